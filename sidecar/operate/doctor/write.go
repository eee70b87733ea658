package doctor

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/show/view"
)

// Write writes findings, for people or for programs.
func Write(p *view.Page, found []Finding) error {
	if p.JSON {
		return p.Encode(found)
	}
	if p.Parsable {
		t := &view.Table{Head: []string{"AREA", "CHECK", "LEVEL", "FOUND", "MEANS", "DO"}}
		for _, x := range found {
			t.Add(x.Area, x.Check, x.Level, x.Found, x.Means, x.Do)
		}
		p.Table(t)
		return nil
	}
	tints := map[string]string{OK: "green", Warn: "yellow", Fail: "red"}
	area := ""
	counts := map[string]int{}
	for _, x := range found {
		if x.Area != area {
			area = x.Area
			p.Printf("%s\n", p.Paint(area, "bold"))
		}
		counts[x.Level]++
		p.Printf("  %s %-21s %s\n", p.Paint(fmt.Sprintf("%-4s", x.Level), tints[x.Level]), x.Check, x.Found)
		if x.Means != "" {
			p.Printf("       %-21s means: %s\n", "", x.Means)
		}
		if x.Do != "" {
			p.Printf("       %-21s do:    %s\n", "", x.Do)
		}
	}
	p.Printf("\n%d ok, %d warnings, %d to repair\n", counts[OK], counts[Warn], counts[Fail])
	return nil
}
