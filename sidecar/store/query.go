package store

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// query gives the text of a query whose rows are of type R. The columns' names are the tags of R's fields.
func query[R any](name string) string { return sql.Query(name, columnsOf(reflect.TypeFor[R]())...) }

// columnsOf gives the columns of a type of rows. The tag db goes before json, which names what people get. Numerics that
// are read as whole millionths are read in an expression of that name.
func columnsOf(row reflect.Type) []string {
	var columns []string
	for i := range row.NumField() {
		f := row.Field(i)
		if f.Anonymous {
			columns = append(columns, columnsOf(f.Type)...)
			continue
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
