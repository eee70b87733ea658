package truth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// A moment that is not known is absent from JSON, or null: every field of an exported type that has a moment says so.
func TestUnknownMomentsAreAbsentFromJSON(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("../../sidecar", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			x, ok := n.(*ast.TypeSpec)
			if !ok || !x.Name.IsExported() {
				return true
			}
			s, ok := x.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range s.Fields.List {
				if f.Tag == nil || len(f.Names) == 0 || !moment(f.Type) {
					continue
				}
				text, err := strconv.Unquote(f.Tag.Value)
				if err != nil {
					t.Fatal(err)
				}
				tag := reflect.StructTag(text).Get("json")
				if tag == "" || tag == "-" {
					continue
				}
				seen++
				if _, options, _ := strings.Cut(tag, ","); !strings.Contains(options, "omitzero") && (isTime(f.Type) || !strings.Contains(options, "omitempty")) {
					t.Errorf("%s: %s.%s is written as JSON even if it is not known: add omitzero", path, x.Name.Name, f.Names[0].Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Errorf("only %d moments are written as JSON: the test looks for the wrong types", seen)
	}
}

// isTime tells whether a field is a time.Time, which omitempty never leaves out.
func isTime(e ast.Expr) bool {
	x, ok := e.(*ast.SelectorExpr)
	return ok && x.Sel.Name == "Time"
}

// moment tells whether a field's type is a moment; nil pointers are null.
func moment(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name == "Instant"
	case *ast.SelectorExpr:
		return x.Sel.Name == "Instant" || x.Sel.Name == "Time" && x.X.(*ast.Ident).Name == "time"
	}
	return false
}
