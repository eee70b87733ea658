package page

import (
	"strings"

	"github.com/fairlease/fairlease/sidecar/show/view"
)

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
		cells := view.ObjectiveCells(view.Form{}, o)
		for k := range cells {
			if number, ok := strings.CutSuffix(cells[k], "%"); ok {
				cells[k] = number + " %" // as on all pages
			}
		}
		rows = append(rows, objectiveRow{cells, view.ObjectiveLevel(o)})
	}
	return "objectives", rows, nil
}
