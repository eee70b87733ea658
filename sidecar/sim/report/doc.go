// Package report shows the scores of several runs: as a table for a terminal, as CSV and JSON,
// and as one HTML page with the plots that papers use to compare schedulers. The page is one file, and needs no network;
// package chart draws the plots.
//
//	measure.go  the scores in tables: name, unit, which direction is better
//	table.go    the terminal
//	export.go   CSV and JSON: every score
//	page.go     the page: sections and figures; page.html is its template
//	figure.go   the content of each figure
//	chart.go    reproduced figures of papers: any curves
//	picture.go  charts as an SVG image; plot.go has its axes, ticks and lines
//
// Equal scores give equal bytes. Names are never trusted: the page uses html/template, also for
// shapes, and the table drops control characters.
package report
