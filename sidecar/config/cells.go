package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/loop/scheduler"
)

// CellFile is a cells file, usually cells.yaml: the cluster's structure, and the reservation of
// each virtual cluster (HiveD Figure 4). It is consistent in itself; CellFile.Against compares it
// with Slurm.
type CellFile struct {
	Name   string
	Cells  *cluster.Cells
	Supply []cells.Supply // of each level: reserved cells, and existing ones

	cellText
	text    []byte
	origins map[string]Origin
	entry   []int // index in physicalCluster of each top cell of Cells
}

// cellText is the file's text. etc/cells has examples that explain each key.
type cellText struct {
	Hierarchy  []cellType `yaml:"cellHierarchy"`
	Physical   []physical `yaml:"physicalCluster"`
	Assignment []assigned `yaml:"vcAssignment"`
}

type cellType struct {
	Name  string `yaml:"name"`
	Child string `yaml:"child"`
	Split int    `yaml:"split"`
	Node  bool   `yaml:"node"`
	Model string `yaml:"model"`
}

// physical is one top cell, or several of one type.
type physical struct {
	Type  string `yaml:"type"`
	Name  string `yaml:"name"`
	Chain string `yaml:"chain"`
	Nodes hosts  `yaml:"nodes"`
}

type assigned struct {
	VC      string  `yaml:"vc"`
	Cells   []quota `yaml:"cells"`
	Pinned  []pin   `yaml:"pinned"`
	Chooser string  `yaml:"chooser"`
	Levels  Levels  `yaml:"levels"`
	// Scheduler is a program of the site that orders the jobs.
	Scheduler         Command  `yaml:"scheduler"`
	SchedulerDeadline Duration `yaml:"scheduler_deadline"`
	// Tradable is "all" if all cells but pinned ones are tradable, or "".
	Tradable string `yaml:"tradable"`
}

type quota struct {
	Type     string `yaml:"type"`
	Number   int    `yaml:"number"`
	Chain    string `yaml:"chain"`
	Tradable int    `yaml:"tradable"`
}

type pin struct {
	Type string `yaml:"type"`
	Node string `yaml:"node"`
	GPU  int    `yaml:"gpu"`
}

// cellChoosers are the orders in which a tenant's jobs may get its cells.
var cellChoosers = []string{cluster.CellsByShare, cluster.CellsFirstCome, cluster.CellsByService, cluster.CellsByStride}

// hosts is a list of hostlists in Slurm's syntax.
type hosts []string

func (r *reader) hosts(into reflect.Value, node *yaml.Node, name string) {
	if node.Kind == yaml.ScalarNode {
		into.Set(reflect.ValueOf(hosts{node.Value}))
		return
	}
	r.list(into, node, name)
}

// mostTypes is far above the number of models and shapes of a cluster.
const mostTypes = 256

// LoadCells reads the cells file at path. Its error lists Problems.
func LoadCells(path string) (*CellFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the file of cells: %w", err)
	}
	return ParseCells(path, text)
}

// ParseCells is LoadCells for a text; name is the file's name in problems.
func ParseCells(name string, text []byte) (*CellFile, error) {
	f := &CellFile{Name: name, text: text, Cells: &cluster.Cells{}, origins: map[string]Origin{}}
	r := &reader{file: name, origins: f.origins,
		keys: []string{"cellHierarchy.name", "cellHierarchy.split", "cellHierarchy.child", "physicalCluster.nodes", "vcAssignment.vc", "vcAssignment.cells", "vcAssignment.pinned", "vcAssignment.chooser", "vcAssignment.levels", "vcAssignment.scheduler", "vcAssignment.scheduler_deadline", "vcAssignment.tradable", "vcAssignment.cells.number", "vcAssignment.cells.tradable"}}
	root := r.parse(text)
	if root != nil {
		r.section(reflect.ValueOf(&f.cellText).Elem(), root, "")
	}
	if r.problems != nil && (root == nil || root.Kind != yaml.MappingNode) {
		return nil, r.problems
	}
	for _, x := range []struct {
		key string
		n   int
		is  string
	}{{"cellHierarchy", len(f.Hierarchy), "the types of cells"}, {"physicalCluster", len(f.Physical), "racks or nodes"}, {"vcAssignment", len(f.Assignment), "virtual clusters"}} {
		if _, there := f.origins[x.key]; x.n == 0 && (there || !r.broken(x.key)) {
			r.wrong(f.origins[x.key].line, x.key, "names no %s; etc/cells has examples", strings.TrimPrefix(x.is, "the "))
		}
	}
	if n := len(f.Hierarchy); n > mostTypes {
		r.wrong(f.line("cellHierarchy"), "cellHierarchy", "names %d types of cells; %d is the most", n, mostTypes)
		return nil, r.problems.sorted()
	}
	f.describe(r)
	state, err := cells.New(*f.Cells)
	var faults cells.Faults
	if errors.As(err, &faults) {
		f.say(r, faults)
	}
	if err != nil && len(r.problems) == 0 {
		r.wrong(0, "", "%v", err)
	}
	if len(r.problems) > 0 {
		return nil, r.problems.sorted()
	}
	f.Supply = state.Cells.Supply()
	return f, nil
}

// broken tells whether there is a problem under a key.
func (r *reader) broken(key string) bool {
	for _, p := range r.problems {
		if p.Key == key || strings.HasPrefix(p.Key, key+".") || strings.HasPrefix(p.Key, key+"[") {
			return true
		}
	}
	return false
}

// describe fills Cells from the text.
func (f *CellFile) describe(r *reader) {
	d := f.Cells
	for i, t := range f.Hierarchy {
		d.Types = append(d.Types, cluster.CellType(t))
		key, misplaced := fmt.Sprintf("cellHierarchy[%d]", i), ""
		switch {
		case t.Child == "" && t.Split != 0:
			misplaced = "splits into cells of no type; write child: and their type, or remove split:"
		case t.Child != "" && t.Model != "":
			misplaced = "has a model, though it is no GPU; write the model where there is no child:"
		}
		if misplaced != "" {
			r.wrong(f.origins[key].line, key, "%s", misplaced)
		}
	}
	total := 0
	for i, p := range f.Physical {
		key := fmt.Sprintf("physicalCluster[%d]", i)
		var nodes []string
		for _, list := range p.Nodes {
			names, err := hostlist.Expand(list)
			if total += len(names); err == nil && total > hostlist.Max {
				err, names = fmt.Errorf("the file names more than %d nodes", hostlist.Max), nil
			}
			if err != nil {
				r.wrong(f.line(key+".nodes", key), key+".nodes", "%v; write it like gpu[001-016],v1", err)
				break
			}
			nodes = append(nodes, names...)
		}
		if len(nodes) == 0 && !r.broken(key) {
			r.wrong(f.line(key), key, "names no nodes; write nodes: gpu[001-016]")
		}
		if r.broken(key) {
			continue
		}
		for _, group := range f.groups(p.Type, nodes) {
			top := cluster.TopCell{Name: p.Name, Chain: p.Chain, Type: p.Type, Nodes: group}
			if p.Name == "" {
				top.Name = group[0]
				if len(group) > 1 {
					top.Name = p.Type + "@" + group[0]
				}
			}
			d.Tops, f.entry = append(d.Tops, top), append(f.entry, i)
		}
		if n := len(d.Tops); p.Name != "" && n > 1 && f.entry[n-2] == i {
			r.wrong(f.line(key+".name", key), key+".name", "names one cell, but the %d nodes are several of type %s; remove it, or list each for itself", len(nodes), p.Type)
			for n > 0 && f.entry[n-1] == i {
				n--
			}
			d.Tops, f.entry = d.Tops[:n], f.entry[:n]
		}
	}
	for i, a := range f.Assignment {
		if key := fmt.Sprintf("vcAssignment[%d].chooser", i); a.Chooser != "" && !slices.Contains(cellChoosers, a.Chooser) {
			r.wrong(f.line(key), key, "%q is not known; write one of %s", a.Chooser, strings.Join(cellChoosers, ", "))
		}
		if key, wrong := fmt.Sprintf("vcAssignment[%d].levels", i), a.Levels.wrong(); wrong != "" {
			r.wrong(f.line(key), key, "%s", wrong)
		}
		if key := fmt.Sprintf("vcAssignment[%d].tradable", i); a.Tradable != "" && a.Tradable != "all" {
			r.wrong(f.line(key), key, "%q is not known; write all, or the number beside each type under cells", a.Tradable)
		}
		v := cluster.VC{Name: a.VC, Chooser: a.Chooser, Levels: a.Levels.list(), Scheduler: f.scheduler(r, i)}
		for j, q := range a.Cells {
			if key := fmt.Sprintf("vcAssignment[%d].cells[%d].tradable", i, j); q.Tradable < 0 || q.Tradable > max(q.Number, 0) {
				r.wrong(f.line(key), key, "must be 0 to %d, the number of cells, got %d", max(q.Number, 0), q.Tradable)
			}
			if a.Tradable == "all" {
				q.Tradable = q.Number
			}
			v.Cells = append(v.Cells, cluster.CellQuota{Chain: q.Chain, Type: q.Type, Cells: q.Number, Tradable: q.Tradable})
		}
		for _, p := range a.Pinned {
			v.Pins = append(v.Pins, cluster.CellPin(p))
		}
		d.VCs = append(d.VCs, v)
	}
}

// Limits of scheduler_deadline, and its default.
const (
	shortestDeadline, longestDeadline = Duration(cluster.Second / 10), Duration(cluster.Minute)
	usualDeadline                     = Duration(2 * cluster.Second)
)

// scheduler gives the scheduler of an entry of vcAssignment; nil = none.
func (f *CellFile) scheduler(r *reader, i int) *cluster.VCScheduler {
	a := &f.Assignment[i]
	key := fmt.Sprintf("vcAssignment[%d].scheduler", i)
	late := key + "_deadline"
	if len(a.Scheduler) == 0 {
		if a.SchedulerDeadline != 0 {
			r.wrong(f.line(late), late, "there is no scheduler; add one, or remove this")
		}
		return nil
	}
	if !filepath.IsAbs(a.Scheduler[0]) {
		r.wrong(f.line(key), key, "%q is no absolute path; write it from / on", a.Scheduler[0])
	}
	deadline := cmp.Or(a.SchedulerDeadline, usualDeadline)
	if deadline < shortestDeadline || deadline > longestDeadline {
		r.wrong(f.line(late), late, "must be %v to %v, got %v", shortestDeadline, longestDeadline, deadline)
	}
	return &cluster.VCScheduler{Command: a.Scheduler, Deadline: deadline.Span()}
}

// Untrusted lists the schedulers that the service would not run on this host.
func (f *CellFile) Untrusted() (out Problems) {
	if f == nil {
		return nil
	}
	for i := range f.Assignment {
		key := fmt.Sprintf("vcAssignment[%d].scheduler", i)
		if a := &f.Assignment[i]; len(a.Scheduler) > 0 {
			if err := scheduler.Usable(a.Scheduler); err != nil {
				o := f.origins[key]
				out = append(out, Problem{Place: o.Place, Key: key, Text: fmt.Sprintf("cannot be run, so the built-in order decides for %s: %v", a.VC, err), line: o.line})
			}
		}
	}
	return out
}

// groups splits the nodes of an entry into cells of its type. They are one group if their number
// does not divide evenly, or the type does not give its number of nodes.
func (f *CellFile) groups(typ string, nodes []string) [][]string {
	n := 1
	t := f.typeOf(typ)
	for steps := 0; t != nil && !t.Node && n > 0 && n <= len(nodes) && steps < len(f.Hierarchy); steps++ {
		n, t = n*t.Split, f.typeOf(t.Child)
	}
	if t == nil || !t.Node || n < 1 || n > len(nodes) || len(nodes)%n != 0 {
		return [][]string{nodes}
	}
	var out [][]string
	for at := 0; at < len(nodes); at += n {
		out = append(out, nodes[at:at+n:at+n])
	}
	return out
}

// typeOf finds a type by name; nil where there is none.
func (f *CellFile) typeOf(name string) *cellType {
	for i := range f.Hierarchy {
		if f.Hierarchy[i].Name == name && name != "" {
			return &f.Hierarchy[i]
		}
	}
	return nil
}

// line gives the line of the first of the keys that is in the file.
func (f *CellFile) line(keys ...string) int {
	for _, k := range keys {
		if o := f.origins[k]; o.line > 0 {
			return o.line
		}
	}
	return 0
}

// beside resolves a path in a configuration, relative to the configuration's folder.
func beside(config, file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(config), file)
}

// shape is the required shape of a node that is a cell.
type shape struct {
	typ, model string
	gpus       int
}

// shapeOf gives the shape of the nodes in cells of a type.
func (f *CellFile) shapeOf(typ string) shape {
	t := f.typeOf(typ)
	for t != nil && !t.Node {
		t = f.typeOf(t.Child)
	}
	if t == nil {
		return shape{}
	}
	s := shape{typ: t.Name, gpus: 1}
	for ; t != nil; t = f.typeOf(t.Child) {
		s.model = t.Model
		s.gpus *= max(t.Split, 1)
	}
	return s
}

// say reports the faults of a description with the keys of the file. If the file could not be
// read in full, possible consequences of that are omitted.
func (f *CellFile) say(r *reader, faults cells.Faults) {
	partly := len(r.problems) > 0
	said := map[Problem]bool{}
	overlaps := map[int][]string{} // of an entry: nodes
	for i := range faults {
		x := &faults[i]
		key := f.key(x)
		entry, _, _ := strings.Cut(key, ".")
		follows := x.Kind == cells.UnknownType || x.Kind == cells.Infeasible || x.Kind == cells.NoNodeLevel || x.Kind == cells.NoSuchNode
		if partly && (follows || r.broken(entry)) {
			continue
		}
		if x.Kind == cells.Overlap && strings.HasPrefix(key, "physicalCluster") {
			e := f.index(x.At)
			overlaps[f.entry[e]] = append(overlaps[f.entry[e]], x.Cell)
			continue
		}
		text := f.words(x, key)
		if p := (Problem{Key: key, Text: text}); text != "" && !said[p] {
			said[p] = true
			r.wrong(f.line(key, entry), key, "%s", text)
		}
	}
	for i := range f.Physical {
		if nodes := overlaps[i]; nodes != nil {
			key := fmt.Sprintf("physicalCluster[%d].nodes", i)
			r.wrong(f.line(key), key, "overlaps: %s %s above, or twice here; a node is in one cell", hostlist.Compress(nodes), f.above(nodes[0], i))
		}
	}
}

// above gives the entry that contains a node, up to upTo.
func (f *CellFile) above(node string, upTo int) string {
	for i := range f.Cells.Tops {
		for _, n := range f.Cells.Tops[i].Nodes {
			if n == node && f.entry[i] < upTo {
				return fmt.Sprintf("in line %d", f.line(fmt.Sprintf("physicalCluster[%d].nodes", f.entry[i])))
			}
		}
	}
	return "is"
}

// index reads the first number of a place such as "vcs[1].cells[0]".
func (f *CellFile) index(at string) (i int) {
	_, rest, _ := strings.Cut(at, "[")
	_, _ = fmt.Sscanf(rest, "%d", &i)
	return i
}

// key gives the file's key that a fault concerns.
func (f *CellFile) key(x *cells.Fault) string {
	at, ok := strings.CutPrefix(x.At, "vcs")
	if ok {
		at = "vcAssignment" + strings.Replace(at, ".pins", ".pinned", 1)
	} else if strings.HasPrefix(x.At, "types") {
		at = "cellHierarchy" + strings.TrimPrefix(x.At, "types")
	} else if strings.HasPrefix(x.At, "tops") {
		at = fmt.Sprintf("physicalCluster[%d]", f.entry[f.index(x.At)])
	} else if x.Kind == cells.Infeasible {
		return f.quotas(x)[0].key
	} else {
		name := cmp.Or(x.Type, x.Chain)
		for i := range f.Hierarchy {
			if f.Hierarchy[i].Name == name {
				at = fmt.Sprintf("cellHierarchy[%d]", i)
				break
			}
		}
	}
	field := map[cells.FaultKind]string{cells.UnknownType: ".type", cells.ManyChains: ".type", cells.ZeroSplit: ".split", cells.Overlap: ".nodes",
		cells.NodeCount: ".nodes", cells.NoSuchNode: ".node", cells.NoSuchGPU: ".gpu", cells.NoCells: ".number", cells.BelowNode: ".type"}[x.Kind]
	if strings.HasPrefix(at, "cellHierarchy") && x.Kind == cells.UnknownType {
		field = ".child"
	}
	if f.line(at+field) > 0 {
		at += field
	}
	return at
}

// share is one VC's quota of a level.
type share struct {
	key, vc string
	number  int
}

// quotas gives the VCs' quotas of the level of an Infeasible fault; at least one.
func (f *CellFile) quotas(x *cells.Fault) []share {
	var out []share
	for i := range f.Assignment {
		a := &f.Assignment[i]
		for j, q := range a.Cells {
			if q.Type == x.Type && (q.Chain == "" || q.Chain == x.Chain) {
				out = append(out, share{fmt.Sprintf("vcAssignment[%d].cells[%d]", i, j), a.VC, q.Number})
			}
		}
	}
	return append(out, share{key: "vcAssignment"})[:max(len(out), 1)]
}

// words says what is wrong and what to do; "" if another fault says it.
func (f *CellFile) words(x *cells.Fault, key string) string {
	switch x.Kind {
	case cells.NoName:
		if strings.HasPrefix(key, "vcAssignment") {
			return "has no name; write vc: and the account of its tenant"
		}
		return "has no name; write name:"
	case cells.Twice:
		name, first := cmp.Or(x.VC, x.Cell, x.Type), ""
		for i := range f.Assignment {
			first = earlier(first, x.VC != "" && f.Assignment[i].VC == name, "vcAssignment[%d]", i)
		}
		for i := range f.Hierarchy {
			first = earlier(first, x.VC+x.Cell == "" && f.Hierarchy[i].Name == name, "cellHierarchy[%d]", i)
		}
		for i := range f.Cells.Tops {
			first = earlier(first, x.Cell != "" && f.Cells.Tops[i].Name == name, "physicalCluster[%d]", f.entry[min(i, len(f.entry)-1)])
		}
		return fmt.Sprintf("%q stands here for the second time, first in line %d; put both together, or rename one", name, f.line(first))
	case cells.UnknownType:
		if strings.HasPrefix(key, "cellHierarchy") && f.Hierarchy[f.index(key)].Child != x.Type {
			return ""
		}
		if x.Type == "" {
			return "says no type; write type: and one of cellHierarchy"
		}
		return fmt.Sprintf("%q is no type of cellHierarchy%s%s", x.Type, f.ofChain(x.Chain), f.meant(x.Type))
	case cells.ManyChains:
		return fmt.Sprintf("%q is in several chains (%s); say which, as in chain: %s", x.Type, strings.Join(f.chains(x.Type), ", "), f.chains(x.Type)[0])
	case cells.Cycle:
		return f.cycle(f.index(key))
	case cells.ZeroSplit:
		return fmt.Sprintf("%q is split into %d cells; write 1 or more", x.Type, x.There)
	case cells.NoModel:
		return fmt.Sprintf("%q is a GPU, for it has no child, but says no model; write model: as Slurm calls it in Gres=gpu:MODEL:N, or child: and split:", x.Type)
	case cells.NoNodeLevel:
		return fmt.Sprintf("chain %s has %d levels with node: true, and needs 1", x.Chain, x.There)
	case cells.TooLarge:
		if x.Type == "" {
			return fmt.Sprintf("chain %s has %d GPUs with its incomplete cells; %d is the most", x.Chain, x.There, x.Needed)
		}
		return fmt.Sprintf("a cell of type %q has %d GPUs; %d is the most%s", x.Type, x.There, x.Needed, map[bool]string{true: " of a node or less"}[x.Needed == cells.NodeGPUs])
	case cells.TooDeep:
		return fmt.Sprintf("chain %s has %d levels; %d is the most", x.Chain, x.There, x.Needed)
	case cells.BelowNode:
		return fmt.Sprintf("%q is smaller than a node; list whole nodes here, and part of one under pinned", x.Type)
	case cells.NodeCount:
		return fmt.Sprintf("%d nodes are no whole number of cells of type %q, which have %d each; add nodes, or list the rest as cells of a smaller type", x.There, x.Type, x.Needed)
	case cells.NoSuchNode:
		return fmt.Sprintf("node %q is in no cell of physicalCluster; add it there", x.Cell)
	case cells.NoSuchGPU:
		return fmt.Sprintf("GPU %d: node %s has %d, numbered from 0", x.Needed-1, x.Cell, x.There)
	case cells.Overlap:
		return fmt.Sprintf("the cell on node %s overlaps another that is pinned", x.Cell)
	case cells.NoCells:
		if x.Type == "" {
			return fmt.Sprintf("VC %q has no cells; write cells: or pinned:, or remove it", x.VC)
		}
		return fmt.Sprintf("%d is no number of cells; write 1 or more", x.There)
	case cells.Infeasible:
		var who []string
		for _, q := range f.quotas(x) {
			who = append(who, fmt.Sprintf("%s %d in line %d", q.vc, q.number, f.line(q.key)))
		}
		return fmt.Sprintf("%d cells of type %q are needed (%s), but %d are there once larger and pinned cells are taken: %d too many; reserve fewer or smaller ones, or add nodes",
			x.Needed, x.Type, strings.Join(who, ", "), x.There, x.Needed-x.There)
	}
	return x.Error()
}

// earlier gives the key of the first occurrence.
func earlier(first string, is bool, format string, i int) string {
	if first != "" || !is {
		return first
	}
	return fmt.Sprintf(format, i)
}

func (f *CellFile) ofChain(chain string) string {
	if chain == "" {
		return ""
	}
	return " in chain " + chain
}

// meant suggests a similar type.
func (f *CellFile) meant(typ string) string {
	var names []string
	for _, t := range f.Hierarchy {
		names = append(names, t.Name)
	}
	if near := nearest(typ, names); near != "" && near != typ {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return "; there are " + strings.Join(names, ", ")
}

// chains gives the largest types that contain a type.
func (f *CellFile) chains(typ string) []string {
	inner := map[string]bool{}
	for _, t := range f.Hierarchy {
		inner[t.Child] = true
	}
	var out []string
	for _, top := range f.Hierarchy {
		if inner[top.Name] {
			continue
		}
		for t := &top; t != nil; t = f.typeOf(t.Child) {
			if t.Name == typ {
				out = append(out, top.Name)
			}
		}
	}
	return out
}

// cycle describes a cycle at the first of its types; "" at the others.
func (f *CellFile) cycle(i int) string {
	path := f.Hierarchy[i].Name
	for t := f.typeOf(f.Hierarchy[i].Child); t != nil; t = f.typeOf(t.Child) {
		path += ", then " + t.Name
		if t == &f.Hierarchy[i] {
			return "contains itself: " + path + "; what is split further and further must end with a GPU"
		}
		for k := range i {
			if t == &f.Hierarchy[k] {
				return ""
			}
		}
		if strings.Count(path, ", then ") > len(f.Hierarchy) {
			return ""
		}
	}
	return ""
}
