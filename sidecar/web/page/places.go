package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// place is a rack of cells, or where there are no cells a row of nodes with equal GPUs.
type place struct {
	Name  string
	Chain string // of cells; "" = there are none
	Model string
	Nodes []*scene.Node
	GPUs  int
	Busy  cluster.GPUCount
	Bad   int

	slots [][]slot // by node
}

// slot is the use of one GPU, by the first of the jobs that share it.
type slot struct {
	Model  string
	VC     string // owner of the cell that contains it
	Tenant string
	Right  cluster.LeaseClass // "" = no lease
	Job    string             // "" = none, or one that the person may not see
	Bad    string
	Part   cluster.GPUCount // of the GPU that the job holds; 0 = it is free
	next   *slot            // that of the next job; nil = there is none
}

// uses lists the jobs that hold the GPU, or parts of it.
func (s *slot) uses(yield func(*slot) bool) {
	for ; s != nil && s.Part > 0 && yield(s); s = s.next {
	}
}

// taken is how much of the GPU jobs hold.
func (s *slot) taken() (n cluster.GPUCount) {
	for u := range s.uses {
		n += u.Part
	}
	return n
}

// PartOf says how much of the GPU the job holds, if it is a part; "" = all of it, or nothing.
func (s *slot) PartOf() string {
	if s.Part == 0 || s.Part >= cluster.CountOf(1) {
		return ""
	}
	return s.Part.String() + " of a GPU"
}

// Use words the use of a GPU.
func (s *slot) Use() string {
	switch {
	case s.Bad != "":
		return s.Bad
	case s.Part == 0:
		return "free"
	case s.Right == "":
		return "held without a lease"
	}
	return string(s.Right)
}

// places is the content of the map.
type places struct {
	By      string // "tenant", "owner" or "right"
	Cells   *view.Cells
	Tiles   []tile
	Pager   Pager
	Keys    []legendKey
	Rows    []nodeRow
	OnlyBad bool
}

// nodeRow is what the map shows of a node, in numbers. Tenants, Rights and Owners say how many GPUs each has.
type nodeRow struct {
	Name                    string
	GPUs, Bad               int
	Busy                    cluster.GPUCount
	Tenants, Rights, Owners string
}

type legendKey struct{ Class, Name string }

// tile is a place on the map.
type tile struct {
	*place
	Width, Height int
	Shapes        []shape
	Owners        string // in words, for people who do not see the map
}

// shape is all GPUs of a tile with one class, as a path.
type shape struct {
	Class string
	D     string
}

const (
	rowOfNodes = 20 // nodes in a place where there are no cells
	mostTiles  = 60
)

// placesOf lists the racks or rows of nodes, with the use of every GPU.
func placesOf(s *scene.Scene) []place {
	used := slotsOf(s)
	var out []place
	add := func(name, chain string, nodes []string) {
		p := place{Name: name, Chain: chain}
		for _, n := range nodes {
			node := s.Node(n)
			if node == nil {
				continue
			}
			slots := used[n]
			p.Nodes, p.slots, p.GPUs = append(p.Nodes, node), append(p.slots, slots), p.GPUs+len(slots)
			for i := range slots {
				if slots[i].Bad != "" {
					p.Bad++
				} else {
					p.Busy += slots[i].taken()
				}
				p.Model = cmp.Or(p.Model, slots[i].Model)
			}
		}
		if len(p.Nodes) > 0 {
			out = append(out, p)
		}
	}
	placed := map[string]bool{}
	if s.Cells != nil {
		for i := range s.Cells.Cluster {
			top := &s.Cells.Cluster[i]
			leaves := leavesOf(top, nil)
			for _, n := range leaves {
				placed[n] = true
			}
			add(cmp.Or(top.Name, hostlist.Compress(leaves)), top.Chain, leaves)
		}
	}
	rest := map[string][]string{} // nodes outside cells, by their GPUs
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if placed[n.Name] {
			continue
		}
		kind := ""
		for _, g := range n.GPUs {
			kind += fmt.Sprintf("%d %s ", g.Count, g.Model)
		}
		rest[kind] = append(rest[kind], n.Name)
	}
	for _, kind := range slices.Sorted(maps.Keys(rest)) {
		for row := range slices.Chunk(rest[kind], rowOfNodes) { // by name
			add(rowName(row), "", row)
		}
	}
	return out
}

// rowName names a row of nodes by the first and the last.
func rowName(nodes []string) string {
	if len(nodes) == 1 {
		return nodes[0]
	}
	return nodes[0] + " to " + nodes[len(nodes)-1]
}

// leavesOf lists the nodes of a cell, in its order.
func leavesOf(c *view.Cell, out []string) []string {
	if len(c.Cells) == 0 {
		return append(out, c.Name)
	}
	for i := range c.Cells {
		out = leavesOf(&c.Cells[i], out)
	}
	return out
}

// slotsOf gives the use of every GPU, by node. Where Slurm does not report indices, jobs hold the first free GPUs.
func slotsOf(s *scene.Scene) map[string][]slot {
	out := make(map[string][]slot, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		var slots []slot
		for _, g := range n.GPUs {
			slots = append(slots, slices.Repeat([]slot{{Model: g.Model, Bad: n.Bad}}, g.Count)...)
		}
		for range n.Drained {
			slots = append(slots, slot{Bad: "drained"})
		}
		for k := range n.Jobs {
			holdOn(slots, &n.Jobs[k])
		}
		out[n.Name] = slots
	}
	if s.Cells != nil {
		for i := range s.Cells.Cluster {
			owners(&s.Cells.Cluster[i], out)
		}
	}
	return out
}

// holdOn marks the GPUs of a job, or parts of them.
func holdOn(slots []slot, h *scene.Holder) {
	devices := max(h.GPUs.Ceil(), len(h.Index), 1)
	part := h.GPUs / cluster.GPUCount(devices)
	mark := func(s *slot) {
		if was := *s; was.taken()+part <= cluster.CountOf(1) && was.Part > 0 {
			s.next = &was
		} else {
			s.next = nil
		}
		s.Part, s.Tenant, s.Right, s.Job = part, h.Tenant, h.Right, h.ID
		devices--
	}
	for _, i := range h.Index {
		if i < len(slots) && devices > 0 {
			mark(&slots[i])
		}
	}
	for i := range slots {
		if s := &slots[i]; devices > 0 && s.taken()+part <= cluster.CountOf(1) && (s.Model == h.Model || h.Model == "") {
			mark(s)
		}
	}
}

// owners marks the GPUs of cells with the virtual clusters that own them.
func owners(c *view.Cell, slots map[string][]slot) {
	for i := range c.Cells {
		owners(&c.Cells[i], slots)
	}
	at := slots[c.Name]
	for i := range c.Uses {
		u := &c.Uses[i]
		for _, g := range u.GPUs {
			if g < len(at) {
				at[g].VC = u.VC
				at[g].Bad = cmp.Or(at[g].Bad, u.Bad)
			}
		}
	}
}

func placesPage(v *visit) (string, any, error) {
	v.Title = "Racks and nodes"
	m := &places{By: v.query("by"), Cells: v.Cells, OnlyBad: v.query("show") == "bad"}
	if m.By != "right" && (m.By != "owner" || v.Cells == nil) {
		m.By = "tenant"
	}
	all := placesOf(v.Scene)
	if m.OnlyBad {
		all = slices.DeleteFunc(all, func(p place) bool { return p.Bad == 0 })
	}
	var from, to int
	m.Pager, from, to = v.pager(len(all), mostTiles)
	for i := range all[from:to] {
		m.Tiles, m.Rows = append(m.Tiles, v.tile(&all[from+i], m.By)), append(m.Rows, all[from+i].rows()...)
	}
	m.Keys = v.keys(m.By)
	return "places", m, nil
}

// rows counts the GPUs of a place by node.
func (p *place) rows() (out []nodeRow) {
	for i, slots := range p.slots {
		row := nodeRow{Name: p.Nodes[i].Name, GPUs: len(slots)}
		tenants, rights, owners := map[string]cluster.GPUCount{}, map[string]cluster.GPUCount{}, map[string]cluster.GPUCount{}
		for k := range slots {
			s := &slots[k]
			if s.VC != "" {
				owners[s.VC] += cluster.CountOf(1)
			}
			if s.Bad != "" {
				row.Bad++
				continue
			}
			for u := range s.uses {
				row.Busy += u.Part
				tenants[cmp.Or(u.Tenant, "no tenant")] += u.Part
				rights[u.Use()] += u.Part
			}
		}
		row.Tenants, row.Rights, row.Owners = strings.Join(counted(tenants), ", "), strings.Join(counted(rights), ", "), strings.Join(counted(owners), ", ")
		out = append(out, row)
	}
	return out
}

// counted words numbers by name, such as "nlp 4": the largest first.
func counted(count map[string]cluster.GPUCount) (out []string) {
	for _, name := range slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b)) }) {
		out = append(out, fmt.Sprintf("%s %s", name, count[name]))
	}
	return out
}

// keys is the legend of the map.
func (v *visit) keys(by string) []legendKey {
	var out []legendKey
	if by == "right" {
		out = []legendKey{{"k0", "guaranteed"}, {"k2", "shared"}, {"k1", "lent (opportunistic)"}, {"k7", "held without a lease"}}
	} else {
		out = v.tenantKeys()
	}
	return append(out, legendKey{"free", "free"}, legendKey{"bad", "bad"})
}

// tenantKeys is the legend of the tenants' colours.
func (v *visit) tenantKeys() (out []legendKey) {
	names := slices.SortedFunc(maps.Keys(v.colour), v.byHue)
	for i, name := range names {
		if rest := len(names) - i; v.hue(name) == grey && rest > 1 {
			return append(out, legendKey{v.Colour(name), plural(rest, "other tenant", "other tenants")})
		}
		out = append(out, legendKey{v.Colour(name), name})
	}
	return out
}

const slotSize = 11 // of a GPU on the map, with the space to the next one, in units of the drawing

// tile draws a place: nodes from left to right, a node's GPUs from top to bottom.
func (v *visit) tile(p *place, by string) tile {
	t := tile{place: p}
	paths := map[string]*strings.Builder{}
	count := map[string]cluster.GPUCount{}
	for x, slots := range p.slots {
		t.Height = max(t.Height, len(slots)*slotSize)
		for y := 0; y < len(slots); y++ {
			draw := func(s *slot, from, to cluster.GPUCount) {
				class := v.slotClass(s, by)
				if paths[class] == nil {
					paths[class] = new(strings.Builder)
				}
				fmt.Fprintf(paths[class], "M%d %vh9v%vh-9z", x*slotSize, cluster.CountOf(y*slotSize)+9*from, 9*(to-from))
			}
			s, all, top := &slots[y], cluster.CountOf(1), cluster.GPUCount(0)
			if s.Bad == "" {
				for u := range s.uses {
					count[cmp.Or(u.Tenant, "no tenant")] += u.Part
					if by != "owner" { // jobs that share it lie one below the other
						draw(u, min(top, all), min(top+u.Part, all))
						top += u.Part
					}
				}
			}
			if top < all {
				rest := *s
				if top > 0 {
					rest.Part = 0
				}
				draw(&rest, top, all)
			}
		}
	}
	t.Width = max(len(p.slots)*slotSize, 1)
	for _, class := range slices.Sorted(maps.Keys(paths)) {
		t.Shapes = append(t.Shapes, shape{class, paths[class].String()})
	}
	parts := counted(count)
	if len(parts) > 3 {
		parts = append(parts[:3], "…")
	}
	t.Owners = strings.Join(parts, ", ")
	return t
}

func (v *visit) slotClass(s *slot, by string) string {
	switch {
	case s.Bad != "":
		return "bad"
	case by == "owner":
		if s.VC == "" {
			return "free"
		}
		return v.Colour(s.VC)
	case s.Part == 0:
		return "free"
	case by == "right":
		return map[cluster.LeaseClass]string{cluster.Guaranteed: "k0", cluster.Shared: "k2", cluster.Opportunistic: "k1", "": "k7"}[s.Right]
	}
	class := v.Colour(s.Tenant)
	if s.Right == cluster.Opportunistic {
		class += " lent"
	}
	return class
}

// onePlace is the content of the page of a rack.
type onePlace struct {
	place
	Rows []gpuRow
	Tile tile
}

// gpuRow is GPUs of a node with equal use.
type gpuRow struct {
	Node  *scene.Node
	First bool // of its node
	GPUs  []int
	slot
	Util   *float64 // mean of the GPUs that telemetry sees
	Memory *int64   // the most of one
}

// List gives the numbers of the GPUs.
func (r *gpuRow) List() string { return ranges(r.GPUs) }

func placePage(v *visit) (string, any, error) {
	name := v.req.PathValue("name")
	all := placesOf(v.Scene)
	at := slices.IndexFunc(all, func(p place) bool { return p.Name == name })
	if at < 0 { // the address may name a node
		at = slices.IndexFunc(all, func(p place) bool {
			return slices.ContainsFunc(p.Nodes, func(n *scene.Node) bool { return n.Name == name })
		})
	}
	if at < 0 {
		return "", nil, errLost
	}
	p := all[at]
	v.Title = p.Name
	out := &onePlace{place: p, Tile: v.tile(&p, "tenant")}
	for i, slots := range p.slots {
		for g := 0; g < len(slots); {
			last := g
			row := gpuRow{Node: p.Nodes[i], First: g == 0, slot: slots[g]}
			for ; last < len(slots) && slots[last] == slots[g]; last++ {
				row.GPUs = append(row.GPUs, last)
			}
			row.seen(p.Nodes[i].Seen)
			out.Rows = append(out.Rows, row)
			for s := slots[g].next; s != nil; s = s.next {
				row.slot, row.First = *s, false
				out.Rows = append(out.Rows, row)
			}
			g = last
		}
	}
	return "place", out, nil
}

// seen takes the counters of the row's GPUs.
func (r *gpuRow) seen(all []store.GPU) {
	var sum float64
	n := 0
	for i := range all {
		g := &all[i]
		if !slices.Contains(r.GPUs, g.Index) {
			continue
		}
		if g.Util != nil {
			sum += *g.Util
			n++
		}
		if g.Memory != nil && (r.Memory == nil || *g.Memory > *r.Memory) {
			r.Memory = g.Memory
		}
	}
	if n > 0 {
		mean := sum / float64(n)
		r.Util = &mean
	}
}

// ranges writes ascending numbers as "0-3, 6".
func ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		if k == i {
			parts = append(parts, fmt.Sprint(list[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[k]))
		}
		i = k + 1
	}
	return strings.Join(parts, ", ")
}
