package store

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// query gives the text of a query with rows of type R. The tags of R's fields name the columns.
func query[R any](name string) string { return sql.Query(name, columnsOf(reflect.TypeFor[R]())...) }

// columnsOf gives the columns of a type of rows. The tag db has precedence over json, which names
// the output. Numerics read as whole millionths use an expression of that name.
func columnsOf(row reflect.Type) []string {
	var columns []string
	for i := range row.NumField() {
		f := row.Field(i)
		if f.Anonymous {
			columns = append(columns, columnsOf(f.Type)...)
			continue
		}
		if f.Tag.Get("db") == "-" {
			continue // no column
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		name := cmp.Or(f.Tag.Get("db"), tag, strings.ToLower(f.Name))
		switch f.Type {
		case reflect.TypeFor[cluster.MicroGPU](), reflect.TypeFor[cluster.Rho]():
			name = "millionths(" + name + ") as " + name
		}
		columns = append(columns, name)
	}
	return columns
}
