package sql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Query gives the text of a query, with the names of the columns that the query's rows have. A column is its name, or
// "EXPRESSION as NAME". Files leave the names out, so that only the type of the rows names them. What stands for them is:
//
//	{columns}         all columns, separated by commas
//	{rows}            in "insert into TABLE {rows}": the columns, and their values from the JSON array $1
//	{new}             in "on conflict (KEY) do update set {new}": every column except KEY takes its new value
//	{changed}         true if the new value of such a column differs from that of the old row, which is called had
//	{few where ...}   in "delete from TABLE where {few where ...}": true for a bounded number of the rows
//
// {new but a, b} leaves out the columns a and b; {columns}, {rows} and {changed} understand this, too. Query panics if there
// is no query of that name, or if it needs columns and has none: ask while starting.
func Query(name string, columns ...string) string {
	text, ok := queries[name]
	if !ok {
		panic(fmt.Sprintf("sql: there is no query %q", name))
	}
	return braces.ReplaceAllStringFunc(text, func(found string) string {
		part := braces.FindStringSubmatch(found)
		what, rest := part[1], part[2]
		switch {
		case what == "few where":
			return "ctid = any (array(\n    select ctid\n    from " + named(table, text) + "\n    where " + rest + "\n    limit 10000\n))"
		case len(columns) == 0:
			panic(fmt.Sprintf("sql: query %q needs columns", name))
		}
		if what == "new" || what == "changed" {
			rest += ", " + named(key, text)
		}
		each := func(format string) string { return list(columns, strings.Split(rest, ", "), format) }
		switch what {
		case "rows":
			return "(\n    " + each("%s") + "\n)\nselect\n    " + each("%s") + "\nfrom json_populate_recordset(null::" + named(table, text) + ", $1)"
		case "new":
			return each("%[1]s = excluded.%[1]s")
		case "changed":
			return "(" + each("had.%s") + ") is distinct from (" + each("excluded.%s") + ")"
		}
		return each("%s")
	})
}

var (
	braces = regexp.MustCompile(`(?s)\{(columns|rows|new|changed|few where)(?: (?:but )?(.*?))?\}`)
	table  = regexp.MustCompile(`(?:insert into|delete from) (\w+)`)
	key    = regexp.MustCompile(`on conflict \(([\w, ]+)\)`)
)

// named gives the name that an expression finds.
func named(expression *regexp.Regexp, text string) string {
	return expression.FindStringSubmatch(text)[1]
}

// list gives the columns without some, each in a format, separated by commas.
func list(columns, without []string, format string) string {
	var out []string
	for _, column := range columns {
		if name := column[strings.LastIndex(column, " ")+1:]; !slices.Contains(without, name) {
			out = append(out, fmt.Sprintf(format, column))
		}
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
