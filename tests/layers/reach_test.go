package layers

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unit is a type-checked package.
type unit struct {
	path  string // below the module
	files []*ast.File
	info  *types.Info
	types *types.Package
}

// checked type-checks the packages of a pattern that have no C, from their sources, with the build's own export data for what they import.
func checked(t *testing.T, fset *token.FileSet, patterns ...string) (out []unit) {
	t.Helper()
	const module = "github.com/fairlease/fairlease/"
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,DepOnly"}, patterns...)...)
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles, CgoFiles       []string
		DepOnly                 bool
	}
	exports := map[string]string{}
	var todo []listed
	for dec := json.NewDecoder(bytes.NewReader(text)); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if exports[p.ImportPath] = p.Export; !p.DepOnly && len(p.CgoFiles) == 0 {
			todo = append(todo, p)
		}
	}
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range todo {
		u := unit{path: strings.TrimPrefix(p.ImportPath, module), info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			u.files = append(u.files, file)
		}
		if u.types, err = (&types.Config{Importer: imports}).Check(p.ImportPath, fset, u.files, u.info); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// The maximum number of methods and fields that a type reaches, through embedded structs too, and of methods of an interface.
// Outside the engine a type with at most as many methods as an interface is a record: it may have any number of fields.
const mostReached, mostFieldsReached, mostAsked = 25, 20, 7

// far are types that reach farther, by package and name, with the methods and fields that they reach at most. The list only gets shorter.
var far = map[string][2]int{
	"metrics.Meter": {mostReached, 22}, "loop.Loop": {mostReached, 24},
	"slurm.seen": {mostReached, 38}, "store.written": {mostReached, 33},
	"config.Config": {40, 45}, "view.Page": {34, mostFieldsReached}, "page.visit": {56, 38}, "scene.Scene": {mostReached, 27},
	"forecast.run": {89, 57}, "forecast.site": {mostReached, 23}, "sim.Virtual": {81, 45}, "baseline.Round": {31, mostFieldsReached}, "score.Meter": {mostReached, 34},
	"input.World": {mostReached, 26}, "experiment.Setup": {mostReached, 27}, "experiment.witness": {mostReached, 26},
}

// Nobody can keep in mind a type that reaches a hall through its embedded structs, though it is small itself.
func TestNoTypeReachesFar(t *testing.T) {
	for _, u := range checked(t, token.NewFileSet(), "./sidecar/...") {
		if strings.HasSuffix(u.path, "test") {
			continue
		}
		engine := strings.HasPrefix(u.path, "sidecar/engine")
		scope := u.types.Scope()
		for _, name := range scope.Names() {
			of, ok := scope.Lookup(name).(*types.TypeName)
			if !ok || of.IsAlias() {
				continue
			}
			if is, ok := of.Type().Underlying().(*types.Interface); ok {
				if n := is.NumMethods(); n > mostAsked {
					t.Errorf("%s.%s asks for %d methods: at most %d", u.path, name, n, mostAsked)
				}
				continue
			}
			most, known := far[u.types.Name()+"."+name]
			if !known {
				most = [2]int{mostReached, mostFieldsReached}
			}
			methods, fields := types.NewMethodSet(types.NewPointer(of.Type())).Len(), reached(of.Type(), map[types.Type]bool{})
			if record := !engine && methods <= mostAsked; record {
				fields = 0
			}
			if methods > most[0] || fields > most[1] {
				t.Errorf("%s.%s reaches %d methods and %d fields: at most %d and %d", u.path, name, methods, fields, most[0], most[1])
			}
			if known && methods <= mostReached && fields <= mostFieldsReached {
				t.Errorf("%s.%s reaches no farther than others: take it off the list", u.path, name)
			}
		}
	}
}

// reached counts the fields of a struct and of the structs that it embeds.
func reached(of types.Type, seen map[types.Type]bool) (n int) {
	if p, ok := of.Underlying().(*types.Pointer); ok {
		of = p.Elem()
	}
	st, ok := of.Underlying().(*types.Struct)
	if !ok || seen[of] {
		return 0
	}
	seen[of] = true
	for i := range st.NumFields() {
		if n++; st.Field(i).Embedded() {
			n += reached(st.Field(i).Type(), seen)
		}
	}
	return n
}

// writers are, by result of a step of the engine, the packages that write it. A chooser plays a hand: it is written by those that choose.
// Records are written by the steps that charge them, and by the plan, which gives them to each step's Put.
var writers = map[string][]string{
	"round.Facts":        {"round"},
	"round.Status":       {"round"},
	"eligible.Found":     {"eligible"},
	"round.Eligibility":  {"eligible"},
	"speeds.Speeds":      {"speeds"},
	"budget.Account":     {"budget", "engine"}, // engine sets Brief
	"budget.Owe":         {"budget"},
	"entitle.Due":        {"entitle"},
	"round.Queued":       {"entitle"},
	"ltgf.Rate":          {"ltgf"},
	"field.Hand":         {"field", "share", "vc"},
	"round.Mark":         {"field", "share", "vc"},
	"actions.Gate":       {"actions"},
	"cluster.Record":     {"ltgf", "lease", "round", "engine"},
	"cluster.Lease":      {"lease", "field", "share", "vc", "engine"},
	"cluster.Ledger":     {"ltgf", "entitle"},
	"cluster.TenantPool": {"ltgf", "entitle", "engine"},
}

// Each step writes its own result and nobody else's. A struct in a variable is the writer's own copy.
func TestEachStepWritesItsOwnResult(t *testing.T) {
	fset, found := token.NewFileSet(), map[string]bool{}
	for _, u := range checked(t, fset, "./sidecar/engine/...") {
		if strings.HasSuffix(u.path, "test") { // it makes input of steps
			continue
		}
		for _, file := range u.files {
			for _, d := range file.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				for _, w := range writes(fn.Body, u.info) {
					name := w.of.Obj().Pkg().Name() + "." + w.of.Obj().Name()
					may, owned := writers[name]
					if !owned {
						continue
					}
					found[name] = true
					if puts := name == "cluster.Record" && strings.HasPrefix(fn.Name.Name, "Put"); !puts && !slices.Contains(may, u.types.Name()) {
						t.Errorf("%s: %s writes %s, which is written by %v", fset.Position(w.at), u.path, name, may)
					}
				}
			}
		}
	}
	for name := range writers {
		if !found[name] {
			t.Errorf("nobody writes %s: is that still its name?", name)
		}
	}
}

// write is a write to a field of a struct, or to an element of a list of structs, that others may see too.
type write struct {
	of *types.Named
	at token.Pos
}

// writes lists the writes in a body.
func writes(body ast.Node, info *types.Info) (out []write) {
	note := func(e ast.Expr) {
		for _, of := range shared(e, info) {
			out = append(out, write{of, e.Pos()})
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					note(e)
				}
			}
		case *ast.IncDecStmt:
			note(n.X)
		case *ast.CallExpr:
			if inPlace(n, info) {
				note(&ast.IndexExpr{X: n.Args[0], Index: n.Args[0]})
				note(n.Args[0]) // a list is a part of the struct that has it
			}
		}
		return true
	})
	return out
}

// inPlace reports whether a call changes the elements of its first argument.
func inPlace(n *ast.CallExpr, info *types.Info) bool {
	switch f := n.Fun.(type) {
	case *ast.Ident:
		_, built := info.Uses[f].(*types.Builtin)
		return built && (f.Name == "clear" || f.Name == "copy")
	case *ast.SelectorExpr:
		fn, ok := info.Uses[f.Sel].(*types.Func)
		if !ok || fn.Pkg() == nil || len(n.Args) == 0 {
			return false
		}
		list := fn.Pkg().Path() == "slices" && slices.ContainsFunc([]string{"Sort", "Reverse", "Delete", "Insert", "Compact", "Replace"}, func(p string) bool { return strings.HasPrefix(fn.Name(), p) })
		return list && fn.Name() != "Sorted" || fn.Pkg().Path() == "sort" && (strings.HasPrefix(fn.Name(), "Slice") && fn.Name() != "SliceIsSorted")
	}
	return false
}

// shared returns the structs whose fields or elements an assignment to an expression changes in memory that is not the function's own.
func shared(e ast.Expr, info *types.Info) (out []*types.Named) {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			if named := namedOf(info.TypeOf(x.X)); named != nil {
				out = append(out, named)
			}
			return out
		case *ast.IndexExpr:
			if of := info.TypeOf(x.X); of != nil {
				if list, ok := of.Underlying().(*types.Slice); ok && !pointer(list.Elem()) {
					if named := namedOf(list.Elem()); named != nil {
						out = append(out, named)
					}
				}
			}
			return out // the elements of a list are a result of their own
		case *ast.SelectorExpr:
			of := info.TypeOf(x.X)
			if of == nil {
				return out
			}
			if named := namedOf(of); named != nil && (pointer(of) || !local(x.X, info)) {
				out = append(out, named)
			}
			if pointer(of) {
				return out
			}
			e = x.X
		default:
			return out
		}
	}
}

// local reports whether an expression is a variable of a function, or a part of one, without a pointer or a list between.
func local(e ast.Expr, info *types.Info) bool {
	switch x := e.(type) {
	case *ast.Ident:
		return true
	case *ast.ParenExpr:
		return local(x.X, info)
	case *ast.SelectorExpr:
		of := info.TypeOf(x.X)
		return of != nil && !pointer(of) && local(x.X, info)
	}
	return false
}

func pointer(of types.Type) bool { _, ok := of.Underlying().(*types.Pointer); return ok }

// namedOf returns the named type of a value, or of what it points to; nil = it has none.
func namedOf(of types.Type) *types.Named {
	if of == nil {
		return nil
	}
	if p, ok := of.Underlying().(*types.Pointer); ok {
		of = p.Elem()
	}
	named, _ := of.(*types.Named)
	if named == nil || named.Obj().Pkg() == nil {
		return nil
	}
	return named
}
