// Package sql holds the text of the journal's views and queries. It runs none
// of it: package migrate makes the views, package store runs the queries.
//
// Files in views are made in the order of their names. Files in queries hold
// several queries, each under a line `-- name: some_name`, and do not list the
// columns of rows: Query writes them for what stands in braces, such as
//
//	-- name: put_jobs
//	insert into jobs {rows}
//	on conflict (key) do update set
//	    {new},
//	    recorded_at = now();
package sql

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
)

//go:embed views/*.sql queries/*.sql
var files embed.FS

// View is one file of views: the statements that make it, and its comments.
type View struct {
	File string
	Text string
}

// Views gives all views in the order in which they must be made.
func Views() []View {
	var views []View
	for _, name := range glob("views/*.sql") {
		views = append(views, View{File: path.Base(name), Text: read(name)})
	}
	return views
}

// ViewNames gives the names of all views.
func ViewNames() []string {
	var names []string
	for _, v := range Views() {
		for _, match := range viewName.FindAllStringSubmatch(v.Text, -1) {
			names = append(names, match[1])
		}
	}
	return names
}

var viewName = regexp.MustCompile(`(?m)^create or replace view (\w+) as$`)

// glob gives the embedded files that match, by name.
func glob(pattern string) []string {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		panic(err) // the pattern is wrong
	}
	return names
}

func read(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it was listed
	}
	return string(text)
}
