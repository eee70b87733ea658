package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/show/explain"
)

// foldAt is the maximum number of lines of a chain or a virtual cluster, unless everything is
// requested.
const foldAt = 40

// branch is a line of a tree.
type branch struct {
	names []string
	says  string
	kids  []branch
}

// lines gives how many lines a tree has.
func lines(all []branch) int {
	n := len(all)
	for i := range all {
		n += lines(all[i].kids)
	}
	return n
}

// merge merges equal siblings without children into one.
func merge(all []branch) []branch {
	at := map[string]int{}
	var out []branch
	for _, b := range all {
		k, ok := at[b.says]
		switch {
		case len(b.kids) > 0:
		case ok:
			out[k].names = append(out[k].names, b.names...)
			continue
		default:
			at[b.says] = len(out)
		}
		out = append(out, b)
	}
	return out
}

// cellWriter writes cells and the jobs in them.
type cellWriter struct{ page *Page }

// Write writes the state of the cells. Long parts are summarised unless all is set.
func (f *Cells) Write(page *Page, all bool) {
	p := cellWriter{page}
	for group := range chunk(f.Cluster, func(c *Cell) string { return c.Chain }) {
		p.page.Printf("%s  %s\n", p.page.Paint("chain "+group[0].Chain, "bold"), sums(group))
		tree := p.branches(group, all)
		if !all && lines(tree) > foldAt {
			tree = fold(group)
		}
		p.tree(tree, "  ", all)
		p.page.Printf("\n")
	}
	for i := range f.VCs {
		p.page.Printf("%s\n", p.page.Paint("VC "+f.VCs[i].VC, "bold"))
		p.levels(f.VCs[i].Levels, all)
		p.page.Printf("\n")
	}
	for i := range f.Trades {
		p.page.Printf("trade %d: %s\n", f.Trades[i].ID, explain.CellTrade(&f.Trades[i]))
	}
	for group := range chunk(f.Fragmentation, func(x *cluster.Fragmentation) string { return x.Chain }) {
		var parts []string
		for i := len(group) - 1; i >= 0; i-- {
			parts = append(parts, fmt.Sprintf("%s %d of %d", group[i].Type, group[i].Broken, group[i].Cells))
		}
		p.page.Printf("chain %s, cells that cannot give their full affinity to a guaranteed lease: %s\n", group[0].Chain, strings.Join(parts, ", "))
	}
	for _, what := range f.Unsafe {
		p.page.Printf("%s\n", p.page.Paint("UNSAFE, nothing is granted: "+what, "red"))
	}
	p.page.Printf("%s\n", p.page.Paint(fmt.Sprintf("as of round %d at %s", f.Round, p.page.Time(f.At)), "dim"))
}

// chunk iterates over runs of equal keys.
func chunk[T any](all []T, key func(*T) string) func(func([]T) bool) {
	return func(yield func([]T) bool) {
		for from := 0; from < len(all); {
			to := from + 1
			for to < len(all) && key(&all[to]) == key(&all[from]) {
				to++
			}
			if !yield(all[from:to]) {
				return
			}
			from = to
		}
	}
}

// branches makes a tree of physical cells. A node with one use of all its GPUs is one line;
// unless all is set, so is such a larger cell, and so are equal siblings.
func (p cellWriter) branches(cells []Cell, all bool) []branch {
	var out []branch
	for i := range cells {
		c := &cells[i]
		b := branch{names: []string{c.Name}, kids: p.branches(c.Cells, all)}
		for k := range c.Uses {
			b.kids = append(b.kids, branch{names: []string{"GPU " + ranges(c.Uses[k].GPUs)}, says: p.use(&c.Uses[k])})
		}
		if len(b.kids) == 1 && len(b.kids[0].kids) == 0 && (len(c.Uses) > 0 || !all) {
			b.says, b.kids = b.kids[0].says, nil
		}
		out = append(out, b)
	}
	if all {
		return out
	}
	return merge(out)
}

// fold makes one line per top cell, and merges equal ones.
func fold(cells []Cell) []branch {
	var out []branch
	for i := range cells {
		out = append(out, branch{names: []string{cells[i].Name}, says: sums(cells[i : i+1])})
	}
	return merge(out)
}

// sums counts the GPUs of cells by use.
func sums(cells []Cell) string {
	counts := map[string]int{}
	var add func([]Cell)
	add = func(cells []Cell) {
		for i := range cells {
			for k := range cells[i].Uses {
				counts[cells[i].Uses[k].kind()] += len(cells[i].Uses[k].GPUs)
			}
			add(cells[i].Cells)
		}
	}
	add(cells)
	total := 0
	var parts []string
	for _, kind := range useKinds {
		if n := counts[kind]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return fmt.Sprintf("%d GPUs: %s", total, strings.Join(parts, ", "))
}

// tree writes lines, indented by level.
func (p cellWriter) tree(all []branch, indent string, unfold bool) {
	width := 0 // of short names, for alignment
	for i := range all {
		width = max(width, min(len(hostlist.Compress(all[i].names)), 30))
	}
	for i := range all {
		if i == foldAt && !unfold {
			p.page.Printf("%s… %d more: fairlease cells show --all\n", indent, len(all)-i)
			return
		}
		p.page.Printf("%s\n", strings.TrimRight(fmt.Sprintf("%s%-*s  %s", indent, width, hostlist.Compress(all[i].names), all[i].says), " "))
		p.tree(all[i].kids, indent+"  ", unfold)
	}
}

// use words the use of GPUs.
func (p cellWriter) use(u *Use) string {
	var parts []string
	say := func(j *JobInCell, how string) {
		if j != nil {
			parts = append(parts, how+p.jobWords(j))
		}
	}
	if u.VC != "" {
		parts = append(parts, "bound to "+u.VC)
	}
	say(u.Holder, "")
	say(u.Guest, "lent to ")
	say(u.Outside, "in use without a lease: ")
	if u.Bad != "" {
		parts = append(parts, "bad: "+u.Bad)
	}
	return cmp.Or(strings.Join(parts, ", "), "free")
}

// jobWords names a job, and the end of its lease.
func (p cellWriter) jobWords(j *JobInCell) string {
	out := fmt.Sprintf("%s of %s", j.ID, cmp.Or(j.User, "somebody"))
	if j.ID == "" { // its names are for others
		out = "a job"
	}
	if j.Tenant != "" {
		out += " (" + j.Tenant + ")"
	}
	if j.Right != "" {
		out += ", " + string(j.Right)
	}
	if j.Until != 0 {
		out += " until " + clock(p.page.words(nil), j.Until)
	}
	if j.State == cluster.Noticed || j.State == cluster.Ending {
		out += " at the latest"
	}
	return out
}

// levels writes a virtual cluster's state at each level.
func (p cellWriter) levels(all []VCLevel, unfold bool) {
	n := 0
	for i := range all {
		n += len(all[i].Cells)
	}
	const few = 3
	for i := range all {
		l := &all[i]
		parts := []string{fmt.Sprintf("%d reserved", l.Reserved)}
		for _, x := range []struct {
			n    int
			what string
		}{{l.Pinned, "pinned"}, {l.Bound, "bound"}, {l.Lost, "lost to bad hardware"}, {l.Free, "free"}} {
			if x.n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
			}
		}
		said := strings.Join(parts, ", ")
		if l.Lent > 0 {
			said += fmt.Sprintf(" (%d lent)", l.Lent)
		}
		name := l.Type
		if l.Chain != l.Type {
			name += " of chain " + l.Chain
		}
		p.page.Printf("  %s, %s: %s\n", name, gpuWords(cluster.CountOf(l.CellGPUs), ""), said)
		for k := range l.Cells {
			if k == few && n > foldAt && !unfold {
				p.page.Printf("    … %d more: fairlease cells show --all\n", len(l.Cells)-k)
				break
			}
			p.page.Printf("    %s\n", p.boundWords(&l.Cells[k], l.CellGPUs))
		}
	}
}

// boundWords describes the place of a bound cell and the jobs in it.
func (p cellWriter) boundWords(c *BoundCell, size int) string {
	where := hostlist.Compress(c.Nodes)
	if len(c.GPUs) > 0 {
		where += " GPU " + ranges(c.GPUs)
	}
	if c.Pinned {
		where += ", pinned"
	}
	var parts []string
	for _, j := range c.Holders {
		parts = append(parts, p.jobWords(j))
	}
	if len(c.Holders) == 0 {
		parts = append(parts, "nobody")
	} else if c.Used < size-c.Bad {
		parts = append(parts, fmt.Sprintf("%d of %d GPUs used", c.Used, size))
	}
	for _, j := range c.Guests {
		parts = append(parts, "lent to "+p.jobWords(j))
	}
	if c.Bad > 0 {
		parts = append(parts, fmt.Sprintf("%d bad", c.Bad))
	}
	return where + ": " + strings.Join(parts, ", ")
}

// ranges writes GPUs of a node: 0-3,6.
func ranges(gpus []int) string {
	var parts []string
	for i := 0; i < len(gpus); {
		from := i
		for i++; i < len(gpus) && gpus[i] == gpus[i-1]+1; i++ {
		}
		if last := gpus[i-1]; last > gpus[from] {
			parts = append(parts, fmt.Sprintf("%d-%d", gpus[from], last))
		} else {
			parts = append(parts, fmt.Sprint(last))
		}
	}
	return strings.Join(parts, ",")
}
