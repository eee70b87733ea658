// Package layers enforces the import rules and the purity of the engine.
package layers

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/fairlease/fairlease/"

// allowed says which of our own packages a package may import, by the longest
// prefix that matches. Imports point one way.
var allowed = map[string][]string{
	"sidecar/cluster":           {},
	"sidecar/cluster/hostlist":  {},
	"sidecar/cluster/kinds":     {},
	"sidecar/cluster/localtime": {},
	"sidecar/cluster/notice":    {"sidecar/cluster"},
	"sidecar/cluster/objective": {"sidecar/cluster"},
	"sidecar/cluster/spending":  {"sidecar/cluster"},
	"sidecar/engine":            {"sidecar/cluster", "sidecar/engine"},
	"sidecar/engine/tickets":    {"sidecar/cluster"},
	"sidecar/engine/ltgf":       {"sidecar/cluster", "sidecar/engine/tickets"},
	"sidecar/engine/policy":     {"sidecar/cluster", "sidecar/engine/policy"},
	"sidecar/engine/round":      {"sidecar/cluster"},
	"sidecar/engine/lease":      {"sidecar/cluster", "sidecar/engine/round"},
	"sidecar/engine/place":      {"sidecar/cluster"},
	"sidecar/engine/profile":    {"sidecar/cluster"},
	"sidecar/engine/rounds":     {"sidecar/cluster"},
	"sidecar/engine/cells":      {"sidecar/cluster"},
	"sidecar/engine/trade":      {"sidecar/cluster"},
	"sidecar/engine/stride":     {"sidecar/cluster"},
	"sidecar/engine/expect":     {"sidecar/cluster"},
	"sidecar/engine/runtimes":   {"sidecar/cluster"},
	"sidecar/engine/evidence":   {"sidecar/cluster", "sidecar/engine/runtimes"},
	"sidecar/engine/stop":       {"sidecar/cluster", "sidecar/engine/expect"},
	// The steps of a round: see package engine.
	"sidecar/engine/admit":           {"sidecar/cluster", "sidecar/engine/lease", "sidecar/engine/round"},
	"sidecar/engine/eligible":        {"sidecar/cluster", "sidecar/engine/admit", "sidecar/engine/lease", "sidecar/engine/ltgf", "sidecar/engine/place", "sidecar/engine/round"},
	"sidecar/engine/slownodes":       {"sidecar/cluster", "sidecar/engine/profile", "sidecar/engine/round"},
	"sidecar/engine/speeds":          {"sidecar/cluster", "sidecar/engine/eligible", "sidecar/engine/evidence", "sidecar/engine/profile", "sidecar/engine/round", "sidecar/engine/stop"},
	"sidecar/engine/budget":          {"sidecar/cluster", "sidecar/engine/eligible", "sidecar/engine/expect", "sidecar/engine/lease", "sidecar/engine/round", "sidecar/engine/stop"},
	"sidecar/engine/entitle":         {"sidecar/cluster", "sidecar/engine/eligible", "sidecar/engine/ltgf", "sidecar/engine/place", "sidecar/engine/policy", "sidecar/engine/preset", "sidecar/engine/profile", "sidecar/engine/round", "sidecar/engine/speeds"},
	"sidecar/engine/answer":          {"sidecar/cluster", "sidecar/engine/policy", "sidecar/engine/profile", "sidecar/engine/trade"},
	"sidecar/engine/preset":          {"sidecar/cluster", "sidecar/engine/answer", "sidecar/engine/policy"},
	"sidecar/engine/market":          {"sidecar/cluster", "sidecar/engine/eligible", "sidecar/engine/entitle", "sidecar/engine/lease", "sidecar/engine/ltgf", "sidecar/engine/profile", "sidecar/engine/round", "sidecar/engine/speeds"},
	"sidecar/engine/field":           {"sidecar/cluster", "sidecar/engine/budget", "sidecar/engine/eligible", "sidecar/engine/entitle", "sidecar/engine/lease", "sidecar/engine/ltgf", "sidecar/engine/market", "sidecar/engine/place", "sidecar/engine/round"},
	"sidecar/engine/share":           {"sidecar/cluster", "sidecar/engine/budget", "sidecar/engine/eligible", "sidecar/engine/field", "sidecar/engine/lease", "sidecar/engine/ltgf", "sidecar/engine/market", "sidecar/engine/place", "sidecar/engine/round", "sidecar/engine/rounds", "sidecar/engine/stride", "sidecar/engine/tickets"},
	"sidecar/engine/vc":              {"sidecar/cluster", "sidecar/engine/budget", "sidecar/engine/cells", "sidecar/engine/eligible", "sidecar/engine/field", "sidecar/engine/lease", "sidecar/engine/place", "sidecar/engine/round"},
	"sidecar/engine/actions":         {"sidecar/cluster", "sidecar/engine/eligible", "sidecar/engine/round"},
	"sidecar/engine/round/roundtest": {"sidecar/cluster", "sidecar/engine/round"},
	"sidecar/engine/breaker":         {"sidecar/cluster", "sidecar/engine/round"},
	"sidecar/engine/why":             {"sidecar/cluster", "sidecar/engine/budget", "sidecar/engine/eligible", "sidecar/engine/entitle", "sidecar/engine/lease", "sidecar/engine/ltgf", "sidecar/engine/round"},
	"sidecar/engine/policy/factor":   {},
	"sidecar/engine/policy/lp":       {},
	"sidecar/forecast":               {"sidecar/cluster", "sidecar/engine"},
	"sidecar/loop":                   {"sidecar/cluster", "sidecar/loop"},
	"sidecar/loop/effect":            {"sidecar/cluster", "sidecar/loop"},
	"sidecar/loop/scheduler":         {"sidecar/cluster"},
	"sidecar/slurm":                  {"sidecar/cluster", "sidecar/slurm/certs"},
	"sidecar/slurm/certs":            {},
	"sidecar/store":                  {"migrate", "sidecar/cluster", "sidecar/forecast", "sidecar/sim/tune", "sidecar/telemetry/gpu", "sidecar/telemetry/remark", "sql"},
	"sidecar/store/storetest":        {"migrate", "tests/cluster"},
	"sidecar/telemetry":              {"sidecar/cluster", "sidecar/slurm/certs"},
	"sidecar/telemetry/gpu/gputest":  {},
	"sidecar/telemetry/remark":       {"sidecar/cluster", "sidecar/telemetry/gpu"},
	"sidecar/config":                 {"sidecar/cluster", "sidecar/config/letter", "sidecar/engine/cells", "sidecar/engine/policy", "sidecar/engine/preset", "sidecar/engine/profile", "sidecar/loop", "sidecar/sim/tune", "sidecar/slurm/certs", "sidecar/telemetry/gpu"},
	"sidecar/config/letter":          {"sidecar/cluster"},
	"sidecar/daemon":                 {"migrate", "sidecar/cluster", "sidecar/config", "sidecar/daemon/metrics", "sidecar/daemon/notices", "sidecar/daemon/syslog", "sidecar/engine", "sidecar/forecast", "sidecar/loop", "sidecar/show/explain", "sidecar/sim/tune", "sidecar/slurm", "sidecar/store", "sidecar/telemetry"},
	"sidecar/daemon/notices":         {"sidecar/cluster", "sidecar/config", "sidecar/slurm/certs", "sidecar/store"},
	"sidecar/daemon/syslog":          {"sidecar/config", "sidecar/store"},
	"sidecar/daemon/metrics":         {"sidecar/cluster", "sidecar/forecast", "sidecar/loop"},
	"sidecar/sim":                    {"sidecar/cluster", "sidecar/engine", "sidecar/loop", "sidecar/sim"},
	"sidecar/sim/advise":             {"sidecar/cluster", "sidecar/engine/cells", "sidecar/show/view", "sidecar/sim/backtest", "sidecar/sim/cellworld", "sidecar/sim/trace", "sidecar/store"},
	"sidecar/sim/backtest":           {"sidecar/cluster", "sidecar/sim", "sidecar/store"},
	"sidecar/sim/baseline":           {"sidecar/cluster", "sidecar/engine"},
	"sidecar/sim/cellworld":          {"sidecar/cluster", "sidecar/engine/cells", "sidecar/sim/trace"},
	"sidecar/sim/experiment":         {"sidecar/cluster", "sidecar/config", "sidecar/engine", "sidecar/loop", "sidecar/sim"},
	"sidecar/sim/input":              {"sidecar/cluster", "sidecar/config", "sidecar/show/failure", "sidecar/show/view", "sidecar/sim/experiment", "sidecar/sim/notes", "sidecar/sim/trace"},
	"sidecar/sim/notes":              {"sidecar/config", "sidecar/sim/backtest", "sidecar/sim/experiment", "sidecar/store"},
	"sidecar/sim/outlet":             {"sidecar/show/failure", "sidecar/sim/report", "sidecar/sim/score"},
	"sidecar/sim/playground":         {"sidecar/cluster", "sidecar/config", "sidecar/show/explain", "sidecar/sim/experiment", "sidecar/sim/report", "sidecar/sim/score", "sidecar/sim/trace"},
	"sidecar/sim/report":             {"sidecar/cluster", "sidecar/show/chart", "sidecar/sim/score"},
	"sidecar/sim/score":              {"sidecar/cluster"},
	"sidecar/sim/session":            {"sidecar/config", "sidecar/show/failure", "sidecar/show/view", "sidecar/sim/backtest", "sidecar/sim/experiment", "sidecar/sim/input", "sidecar/sim/notes", "sidecar/sim/outlet", "sidecar/sim/score", "sidecar/sim/sweep", "sidecar/store"},
	"sidecar/sim/sweep":              {"sidecar/cluster", "sidecar/config", "sidecar/show/failure", "sidecar/show/view", "sidecar/sim/experiment", "sidecar/sim/input", "sidecar/sim/outlet", "sidecar/sim/report", "sidecar/sim/score"},
	"sidecar/sim/terms":              {"sidecar/cluster", "sidecar/config", "sidecar/loop", "sidecar/show/failure", "sidecar/show/view", "sidecar/sim/backtest", "sidecar/sim/experiment", "sidecar/sim/input", "sidecar/sim/notes", "sidecar/sim/score", "sidecar/sim/tune", "sidecar/store"},
	"sidecar/sim/trace":              {"sidecar/cluster", "sidecar/show/chart"},
	"sidecar/sim/tune":               {"sidecar/cluster", "sidecar/sim/score"},
	"sidecar/sim/worth":              {"sidecar/cluster", "sidecar/sim/backtest", "sidecar/sim/experiment", "sidecar/sim/score", "sidecar/sim/trace", "sidecar/store"},
	"sidecar/show/chart":             {"third_party/uplot"},
	"sidecar/show/explain":           {"sidecar/cluster"},
	"sidecar/show/failure":           {"sidecar/slurm"},
	"sidecar/show/monthly":           {"sidecar/cluster", "sidecar/show/chart", "sidecar/show/failure", "sidecar/show/view", "sidecar/store"},
	"sidecar/show/top":               {"sidecar/cluster", "sidecar/show/failure", "sidecar/show/view", "sidecar/store"},
	"sidecar/show/view":              {"sidecar/cluster", "sidecar/config", "sidecar/engine", "sidecar/forecast", "sidecar/show/explain", "sidecar/store"},
	"sidecar/operate":                {"contrib/python", "sidecar/cluster", "sidecar/config", "sidecar/daemon", "sidecar/engine", "sidecar/loop", "sidecar/operate/connect", "sidecar/show/failure", "sidecar/show/view", "sidecar/sim/tune", "sidecar/slurm", "sidecar/store"},
	"sidecar/operate/beside":         {"sidecar/cluster", "sidecar/engine", "sidecar/forecast", "sidecar/sim/tune"},
	"sidecar/operate/build":          {"migrate", "sidecar/engine/policy/lp"},
	"sidecar/operate/connect":        {"sidecar/cluster", "sidecar/config", "sidecar/daemon", "sidecar/loop", "sidecar/operate/build", "sidecar/show/failure", "sidecar/sim/tune", "sidecar/slurm", "sidecar/store"},
	"sidecar/operate/doctor":         {"migrate", "sidecar/cluster", "sidecar/config", "sidecar/daemon/syslog", "sidecar/forecast", "sidecar/loop", "sidecar/operate/build", "sidecar/operate/connect", "sidecar/show/failure", "sidecar/show/view", "sidecar/sim", "sidecar/slurm", "sidecar/store", "sidecar/telemetry"},
	"sidecar/operate/outlook":        {"sidecar/cluster", "sidecar/config", "sidecar/engine", "sidecar/forecast", "sidecar/loop", "sidecar/operate", "sidecar/show/failure", "sidecar/show/view", "sidecar/sim", "sidecar/store"},
	"sidecar/operate/rehearsal":      {"sidecar/cluster", "sidecar/show/failure", "sidecar/show/view", "sidecar/slurm"},
	"sidecar/operate/trial":          {"sidecar/cluster", "sidecar/config", "sidecar/engine/profile", "sidecar/operate/connect", "sidecar/show/failure", "sidecar/show/view", "sidecar/slurm", "sidecar/store", "sidecar/telemetry"},
	"sidecar/web":                    {"sidecar/web/api", "sidecar/web/rights"},
	"sidecar/web/api":                {"sidecar/cluster", "sidecar/forecast", "sidecar/show/view", "sidecar/store", "sidecar/web/rights", "sidecar/web/scene"},
	"sidecar/web/ask":                {"sidecar/cluster", "sidecar/config", "sidecar/operate/connect", "sidecar/show/failure", "sidecar/show/view", "sidecar/store", "sidecar/web/api", "sidecar/web/rights", "sidecar/web/scene"},
	"sidecar/web/page":               {"sidecar/cluster", "sidecar/forecast", "sidecar/show/chart", "sidecar/show/explain", "sidecar/show/view", "sidecar/store", "sidecar/web/rights", "sidecar/web/scene"},
	"sidecar/web/rights":             {"sidecar/telemetry", "sidecar/web/scene"},
	"sidecar/web/scene":              {"sidecar/cluster", "sidecar/forecast", "sidecar/show/explain", "sidecar/show/view", "sidecar/store"},
	"sidecar/web/scene/scenetest":    {"sidecar/cluster", "sidecar/engine", "sidecar/forecast", "sidecar/sim/simtest", "sidecar/store", "sidecar/web/scene"},
	"sidecar/web/site":               {"sidecar/config", "sidecar/operate/connect", "sidecar/show/failure", "sidecar/store", "sidecar/telemetry", "sidecar/web"},
	"sidecar/cmd/simulate":           {"sidecar/config", "sidecar/show/failure", "sidecar/show/view", "sidecar/sim"},

	"migrate":           {"sql"},
	"research/papers":   {"sidecar/cluster", "sidecar/engine", "sidecar/sim/baseline"},
	"research/cmd":      {"research/papers", "sidecar/cmd/simulate", "sidecar/config", "sidecar/show/failure", "sidecar/sim/session"},
	"research/figures":  {"research/gavel", "research/papers", "research/steady", "sidecar/cluster", "sidecar/engine", "sidecar/sim"},
	"research/gavel":    {"research/papers", "sidecar/cluster", "sidecar/engine/profile", "sidecar/sim"},
	"research/hived":    {"sidecar/cluster", "sidecar/sim/cellworld", "sidecar/sim/trace"},
	"research/svg":      {"sidecar/show/chart", "sidecar/sim/report"},
	"research/steady":   {"sidecar/cluster", "sidecar/sim"},
	"sql":               {},
	"third_party/uplot": {},
}

// files calls f for every Go file that is not a test.
func files(t *testing.T, root string, f func(dir string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(filepath.Join("../..", root), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		rel, err := filepath.Rel("../..", filepath.Dir(path))
		f(filepath.ToSlash(rel), fset, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Fatalf("no Go files under %s: the rules guard nothing", root)
	}
}

func imports(t *testing.T, file *ast.File) []string {
	t.Helper()
	var out []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, path)
	}
	return out
}

func TestImportsPointOneWay(t *testing.T) {
	for root := range allowed {
		files(t, root, func(dir string, _ *token.FileSet, file *ast.File) {
			if rule(dir) != root {
				return // a longer prefix rules it
			}
			for _, path := range imports(t, file) {
				if own, ok := strings.CutPrefix(path, module); ok && !under(own, allowed[root]) {
					t.Errorf("%s imports %s; it may import only %v", dir, own, allowed[root])
				}
			}
		})
	}
}

// TestResearchStandsApart keeps what only repeats experiments out of the program that sites install.
func TestResearchStandsApart(t *testing.T) {
	files(t, "sidecar", func(dir string, _ *token.FileSet, file *ast.File) {
		for _, path := range imports(t, file) {
			if own, ok := strings.CutPrefix(path, module); ok && under(own, []string{"research"}) {
				t.Errorf("%s imports %s: research imports sidecar, never the other way round", dir, own)
			}
		}
	})
}

// A house has a dozen rooms: a new idea finds its place in one of them.
func TestRooms(t *testing.T) {
	const most = 14
	rooms, err := os.ReadDir("../../sidecar")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(rooms); n == 0 || n > most {
		t.Errorf("sidecar has %d folders: at most %d", n, most)
	}
}

// rule gives the longest key of allowed that dir is under.
func rule(dir string) string {
	best := ""
	for prefix := range allowed {
		if (dir == prefix || strings.HasPrefix(dir, prefix+"/")) && len(prefix) > len(best) {
			best = prefix
		}
	}
	return best
}

func under(path string, prefixes []string) bool {
	for _, p := range prefixes {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

// forbidden is what the engine and the vocabulary may not import: the clock is
// caught below, since time.Duration is harmless.
var forbidden = []string{
	"os", "io", "net", "log", "sync", "context", "database", "math/rand", "crypto/rand", "runtime", "syscall",
	"github.com/rs/zerolog", "github.com/jackc",
}

// withC are the only packages that may use cgo. Their C is a pure function of its arguments: CLP, and a kernel.
var withC = []string{"sidecar/engine/policy/lp", "sidecar/engine/policy/factor"}

func TestTheEngineIsPure(t *testing.T) {
	for _, root := range []string{"sidecar/engine", "sidecar/cluster"} {
		files(t, root, func(dir string, fset *token.FileSet, file *ast.File) {
			for _, path := range imports(t, file) {
				if path == "C" && !slices.Contains(withC, dir) {
					t.Errorf("%s uses cgo: only %v may", dir, withC)
				}
				if under(path, forbidden) {
					t.Errorf("%s imports %s: the engine has no clock, I/O, log, goroutine or random source", dir, path)
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
					t.Errorf("%s: the engine starts no goroutine and uses no channel", fset.Position(n.Pos()))
				case *ast.SelectorExpr:
					if clock(x) {
						t.Errorf("%s: the engine may not read the clock (time.%s)", fset.Position(n.Pos()), x.Sel.Name)
					}
				case *ast.CallExpr:
					if id, ok := x.Fun.(*ast.Ident); ok && (id.Name == "panic" || id.Name == "print" || id.Name == "println") {
						t.Errorf("%s: the engine never calls %s", fset.Position(n.Pos()), id.Name)
					}
				}
				return true
			})
		})
	}
}

// Commands are wiring: what they do lives in rooms that know of no command line.
func TestOnlyTheProgramKnowsCommands(t *testing.T) {
	files(t, "sidecar", func(dir string, _ *token.FileSet, file *ast.File) {
		for _, path := range imports(t, file) {
			if under(path, []string{"github.com/spf13/cobra"}) && !under(dir, []string{"sidecar/cmd"}) {
				t.Errorf("%s imports %s: only sidecar/cmd may", dir, path)
			}
		}
	})
}

// A view is a function of values: it may write to a writer, and knows nothing else of the world.
func TestViewsReadNothing(t *testing.T) {
	files(t, "sidecar/show/view", func(dir string, fset *token.FileSet, file *ast.File) {
		for _, path := range imports(t, file) {
			if path != "io" && under(path, forbidden) {
				t.Errorf("%s imports %s: a view has no clock, file, log, goroutine or random source", dir, path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if x, ok := n.(*ast.SelectorExpr); ok && clock(x) {
				t.Errorf("%s: a view may not read the clock (time.%s)", fset.Position(n.Pos()), x.Sel.Name)
			}
			return true
		})
	})
}

// clock tells whether an expression reads or waits for real time.
func clock(x *ast.SelectorExpr) bool {
	id, ok := x.X.(*ast.Ident)
	if !ok || id.Name != "time" {
		return false
	}
	switch x.Sel.Name {
	case "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker":
		return true
	}
	return false
}

// The limits of what one can keep in mind: the maximum number of methods of a type of the engine,
// and of fields of a struct. cluster's values are the vocabulary of the journal, and are not
// counted.
const mostMethods, mostFields = 25, 15

// No type of the engine grows into a hall: a struct has few fields, a type few methods, and nothing is called for what it leaves
// behind somewhere: what takes nothing gives something.
func TestRoomsOfTheEngineStaySmall(t *testing.T) {
	methods := map[string]int{}
	files(t, "sidecar/engine", func(dir string, fset *token.FileSet, file *ast.File) {
		name := filepath.Base(fset.Position(file.Pos()).Filename)
		if built, err := build.Default.MatchFile(filepath.Join("../..", dir), name); err != nil || !built {
			return
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Type.Params.NumFields()+d.Type.Results.NumFields() == 0 {
					t.Errorf("%s: %s takes nothing and gives nothing", dir, d.Name.Name)
				}
				if d.Recv != nil {
					methods[dir+"."+receiver(d.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if of, ok := s.(*ast.TypeSpec); ok {
						if st, ok := of.Type.(*ast.StructType); ok && st.Fields.NumFields() > mostFields {
							t.Errorf("%s: %s has %d fields: at most %d", dir, of.Name.Name, st.Fields.NumFields(), mostFields)
						}
					}
				}
			}
		}
	})
	for of, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d methods: at most %d", of, n, mostMethods)
		}
	}
}

// receiver gives the name of a receiver's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// Properties are drawn from the same seed every time: each package that draws some says so. Fresh seeds are for make soak.
func TestPropertiesAreDrawnAlike(t *testing.T) {
	draws, seeded := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		dir := filepath.Dir(path)
		draws[dir] = draws[dir] || strings.Contains(string(text), "rapid."+"Check(")
		seeded[dir] = seeded[dir] || strings.Contains(string(text), `flag.Set("rapid.`+`seed"`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range draws {
		if draws[dir] && !seeded[dir] {
			t.Errorf("%s draws properties from a seed that is new each time: it needs a seed_test.go like that of sidecar/engine/policy", dir)
		}
	}
}
