package preset

import "strings"

// ofPaper ends the names of presets with the defaults of their papers.
const ofPaper = ":" + Paper

// papers has the defaults that a paper implies and fairlease does not have, by preset, as a configuration. ASTRAEA serves the job that is furthest
// behind and gives GPUs at the ends of terms alone, to whoever is behind by anything; it knows no limit of bursts, no floor of who repays and no
// cost of stops. So does Gandiva_fair, in quanta, by its stride; a new job joins at the least pass and does not go first.
var papers = map[string]string{
	Astraea:     asInPapers + "jobs: {order: rho}\n",
	GandivaFair: asInPapers + "jobs: {order: rho, new_first: false}\nmodels: {chooser: " + Paper + "}\n",
}

const asInPapers = `
stop: {allowance: 0s, overhead: 0, total: 0, per_hour: 0}
reclaim: {threshold: 0s}
recall: {first_lease: false}
compact: {max_cost: 0, max_wait: 0s}
burst: {max: 0}
repay: {floor: 0}
`

// Base gives the name of a preset without the defaults of its paper: astraea of astraea:paper, and any other name itself.
func Base(name string) string {
	if base, ok := strings.CutSuffix(name, ofPaper); ok && papers[base] != "" {
		return base
	}
	return name
}

// Papers lists the presets with the defaults of their papers.
func Papers() []string { return []string{Astraea + ofPaper, GandivaFair + ofPaper} }

// PaperDefaults gives the defaults of a preset with those of its paper, as a configuration; "" = it has the usual ones.
func PaperDefaults(name string) string {
	if base := Base(name); base != name {
		return papers[base]
	}
	return ""
}
