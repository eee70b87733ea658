package envy

// Program is an instance; n tenants, k models. Everything is in units in which the equal
// division per weight is about 1: see the package.
type Program struct {
	Gain  []float64 // of each tenant, > 0
	Mass  []float64 // of each tenant, > 0; of every model there is their sum
	Own   []float64 // n×k: what a tenant's own part is worth to it, >= 0
	Eye   []float64 // n×k: what it sees in another's part, >= 0
	Base  []float64 // of each tenant, >= 0: that much it sees in any
	Floor []float64 // of each tenant: what it is to have at least
	Unit  []float64 // of each model, > 0
	Cap   []float64 // of each tenant; +Inf = none
}

// size gives the numbers of tenants and of models.
func (p *Program) size() (n, k int) {
	n = len(p.Gain)
	return n, len(p.Own) / n
}

// row gives row i of a matrix of k columns.
func row(a []float64, k, i int) []float64 { return a[i*k : i*k+k : i*k+k] }

// pair is an envy row: what i sees in l's part is not more than what i has.
type pair struct{ i, l int32 }
