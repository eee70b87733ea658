package report

import (
	"bytes"
	"io"
)

const (
	rowTitle  = 26 // pixels of a row's title, and of the legend
	keyLength = 150
)

// Picture writes an SVG image with a row of plots for each chart. The charts' panels have lines,
// with the same curves in each. The error is w's.
func Picture(w io.Writer, title string, charts []Chart) error {
	type place struct {
		*plot
		X, Y int
	}
	type row struct {
		Title string
		Y     int
		Plots []place
	}
	type name struct {
		key
		X, Text int
	}
	picture := struct {
		Title string
		W, H  int
		Keys  []name
		Rows  []row
	}{Title: title, H: rowTitle}
	for _, c := range charts {
		r := row{Title: c.Title, Y: picture.H + rowTitle - 8}
		for i := range c.Panels {
			panel := c.Panels[i]
			panel.Y = panel.Title + ", " + panel.Y
			f := panel.figure()
			if picture.Keys == nil {
				for k, entry := range f.Legend {
					picture.Keys = append(picture.Keys, name{entry, 8 + keyLength*k, 40 + keyLength*k})
				}
			}
			r.Plots = append(r.Plots, place{f.Plot, plotWidth * i, picture.H + rowTitle})
		}
		picture.W, picture.H = max(picture.W, plotWidth*len(c.Panels)), picture.H+rowTitle+plotHeight
		picture.Rows = append(picture.Rows, r)
	}
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, "picture.html", picture); err != nil {
		return err
	}
	return safely(w, b.Bytes())
}
