package page

import "github.com/fairlease/fairlease/sidecar/show/view"

// objectiveRow is an objective in words, and whether it was kept.
type objectiveRow struct {
	Cells []string
	Level string // good, warn or bad
}

func objectivesPage(v *visit) (string, any, error) {
	v.Title = "Objectives"
	var rows []objectiveRow
	for i := range v.Status.Objectives {
		o := &v.Status.Objectives[i]
		rows = append(rows, objectiveRow{view.ObjectiveCells(view.Form{}, o), view.ObjectiveLevel(o)})
	}
	return "objectives", rows, nil
}
