// Package uplot holds the chart library uPlot 1.6.32 by Leon Sorokin (MIT licence), as its npm package has it: the minified
// script and its style sheet, unchanged.
//
// The files are in the repository, since `go build` from a fresh clone must work where there is no npm. Nobody edits them:
// SHA256SUMS has their checksums, and a test in tests/browser compares them with the npm package, which
// tests/browser/package-lock.json pins by its integrity hash. `make uplot` copies them from there after a change of the
// version.
package uplot

import _ "embed" // the files

// Script is the library, which defines the global uPlot. Style is its style sheet. License is the text of its licence,
// which must accompany both.
var (
	//go:embed uPlot.iife.min.js
	Script string
	//go:embed uPlot.min.css
	Style string
	//go:embed LICENSE
	License string
)
