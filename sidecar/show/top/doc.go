// Package top shows a site in a terminal, again and again: tenants, leases, and waiting jobs with the reason.
//
//	Source   asks the site, at most once a second
//	Picture  its answer
//	Screen   a bubbletea model: keys and pictures go in, frames of at most the terminal's size come out
//
// Frames hold ASCII letters only, apart from names, and mark the chosen line by a letter: they need no colours.
package top
