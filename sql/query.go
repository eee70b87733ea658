package sql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Query gives the text of a query, with the names of the columns that the query's rows have. A column is its name, or
// "EXPRESSION as NAME". Files leave the names out, so that only the type of the rows names them. Their placeholders are:
//
//	{columns}         all columns, separated by commas
//	{rows}            in "insert into TABLE {rows}": the columns, and their values from the JSON array $1
//	{new}             in "on conflict (KEY) do update set {new}": every column except KEY takes its new value
//	{changed}         true if the new value of such a column differs from that of the old row, which is called had
//	{few where ...}   in "delete from TABLE where {few where ...}": true for a bounded number of the rows
//
// {new but a, b} leaves out the columns a and b; {columns}, {rows} and {changed} understand this, too. Query panics if there
// is no query of that name, if it needs columns and has none, or if it leaves out one that is not there: ask while starting.
func Query(name string, columns ...string) string {
	text, ok := queries[name]
	if !ok {
		panic(fmt.Sprintf("sql: there is no query %q", name))
	}
	return braces.ReplaceAllStringFunc(text, func(found string) string {
		part := braces.FindStringSubmatch(found)
		what, but, condition := part[1], split(part[2]), part[3]
		if what == "few where" {
			return fmt.Sprintf("ctid = any (array(\n    select ctid\n    from %s\n    where %s\n    limit 10000\n))", match(table, text), condition)
		}
		for _, column := range but {
			if !slices.ContainsFunc(columns, func(c string) bool { return nameOf(c) == column }) {
				panic(fmt.Sprintf("sql: query %q has no column %q to leave out", name, column))
			}
		}
		if what == "new" || what == "changed" {
			but = append(but, split(match(key, text))...)
		}
		all := func(format string) string { return each(columns, but, format) }
		switch what {
		case "rows":
			return fmt.Sprintf("(\n    %[1]s\n)\nselect\n    %[1]s\nfrom json_populate_recordset(null::%[2]s, $1)", all("%s"), match(table, text))
		case "new":
			return all("%[1]s = excluded.%[1]s")
		case "changed":
			return "(" + all("had.%s") + ") is distinct from (" + all("excluded.%s") + ")"
		}
		return all("%s")
	})
}

var (
	braces = regexp.MustCompile(`(?s)\{(columns|rows|new|changed|few where)(?: but ([\w, ]+)| ([^}]+))?\}`)
	table  = regexp.MustCompile(`(?:insert into|delete from) (\w+)`)
	key    = regexp.MustCompile(`on conflict \(([\w, ]+)\)`)
)

// match gives the name, or the names, that an expression finds.
func match(expression *regexp.Regexp, text string) string {
	return expression.FindStringSubmatch(text)[1]
}

// nameOf gives a column's name.
func nameOf(column string) string { return column[strings.LastIndex(column, " ")+1:] }

// split gives the names of a list with commas.
func split(names string) []string {
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
}

// each gives the columns without some, each in a format, separated by commas. It panics if there are none.
func each(columns, but []string, format string) string {
	var out []string
	for _, column := range columns {
		if !slices.Contains(but, nameOf(column)) {
			out = append(out, fmt.Sprintf(format, column))
		}
	}
	if len(out) == 0 {
		panic("sql: a query needs columns and has none")
	}
	return strings.Join(out, ",\n    ")
}

var queries = load()

func load() map[string]string {
	all := map[string]string{}
	for _, file := range glob("queries/*.sql") {
		for _, part := range strings.Split("\n"+read(file), "\n-- name: ")[1:] {
			name, text, _ := strings.Cut(part, "\n")
			if _, twice := all[name]; twice {
				panic(fmt.Sprintf("sql: query %q is there twice, again in %s", name, file))
			}
			all[name] = strings.TrimSpace(text)
		}
	}
	return all
}
