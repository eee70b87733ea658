// Package report shows the scores of several runs: as a table for a terminal, as
// CSV and JSON, and as one HTML page with the plots by which the papers compare
// schedulers. The page needs no network and no script.
//
//	measure.go  the scores that tables show: name, unit, which way is better
//	table.go    the terminal
//	export.go   CSV and JSON: every score
//	page.go     the page: sections and figures; page.html is its template
//	figure.go   what each figure shows
//	chart.go    figures of papers made again: any curves
//	plot.go     axes, scales, ticks, and the shapes on them
//
// The same scores give the same bytes. Names are never trusted: the page goes
// through html/template, shapes and all, and the table drops what a terminal
// would obey.
package report
