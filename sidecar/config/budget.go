package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
)

// Budget is what a tenant may use in a period of the calendar.
type Budget struct {
	GPUHours    float64            `yaml:"gpu_hours"`
	Per         string             `yaml:"per"`  // "" = month
	Zone        string             `yaml:"zone"` // of the calendar; "" = that of the host
	ModelPrices map[string]float64 `yaml:"model_prices"`
	AtEnd       string             `yaml:"at_end"` // "" = warn
}

// String words a budget, for display.
func (b Budget) String() string {
	words := strconv.FormatFloat(b.GPUHours, 'f', -1, 64) + " GPU-hours per " + b.per()
	if b.Zone != "" {
		words += " (" + b.Zone + ")"
	}
	for _, model := range sortedKeys(b.ModelPrices) {
		words += fmt.Sprintf(", %s costs %v", model, b.ModelPrices[model])
	}
	return words + ", at its end " + b.atEnd()
}

func (b *Budget) per() string   { return cmp.Or(b.Per, string(spending.Month)) }
func (b *Budget) atEnd() string { return cmp.Or(b.AtEnd, string(spending.Warn)) }

// Spending gives the budgets of tenants, by name.
func (c *Config) Spending() []spending.Budget {
	var out []spending.Budget
	for _, tenant := range sortedKeys(c.Budgets) {
		b := c.Budgets[tenant]
		zone := time.Local
		if b.Zone != "" {
			zone, _ = time.LoadLocation(b.Zone) // checked
		}
		out = append(out, spending.Budget{Tenant: tenant, Hours: b.GPUHours, Prices: b.ModelPrices, Per: spending.Per(b.per()), Zone: zone, AtEnd: spending.AtEnd(b.atEnd())})
	}
	return out
}

// Limits of the submit plugin: the bytes of a tenant's name and of its prices in a line of the list of budgets (struct gate_budget).
const (
	maxTenant = 63
	maxPrices = 511
)

// pricesLen gives the most bytes that the prices of a budget have in that line.
func (b *Budget) pricesLen(worth map[string]Worth) int {
	prices := map[string]float64{}
	maps.Copy(prices, b.ModelPrices)
	for model, w := range worth {
		price, named := prices[model]
		if !named {
			price = 1
		}
		prices[model] = price * cluster.MicroGPU(w).Float()
	}
	n, most := 0, 1
	for model, price := range prices {
		size := len(strconv.FormatFloat(price, 'g', -1, 64))
		n, most = n+len(",=")+len(model)+size, max(most, size)
	}
	return len("*=") + most + n
}

func (k *checker) budgets() {
	for _, tenant := range sortedKeys(k.c.Budgets) {
		b, at := k.c.Budgets[tenant], "budgets."+tenant
		where := func(key string) string { // a key that is missing has the line of its tenant
			if k.c.from.origins[at+"."+key].InFile() {
				return at + "." + key
			}
			return at
		}
		k.must(b.GPUHours > 0 && b.GPUHours <= 1e12, where("gpu_hours"), "a budget must be above 0 and at most 1e12 GPU-hours, got %v; a tenant that should get idle GPUs only has weight 0 (tenants.weights)", b.GPUHours)
		k.oneOf(where("per"), b.per(), spending.Pers...)
		k.oneOf(where("at_end"), b.atEnd(), spending.AtEnds...)
		if b.atEnd() == string(spending.Refuse) {
			k.must(len(tenant) <= maxTenant && !strings.ContainsFunc(tenant, unicode.IsSpace), where("at_end"), "the submit plugin reads names of tenants without blanks and of at most %d bytes; write at_end: idle-only for %q, or rename the account in Slurm", maxTenant, tenant)
			size := b.pricesLen(k.c.Models.Worth)
			k.must(size <= maxPrices, where("model_prices"), "the submit plugin reads at most %d bytes of prices, and these are %d; remove models that cost 1, or write at_end: idle-only", maxPrices, size)
		}
		_, err := time.LoadLocation(b.Zone)
		k.must(err == nil, where("zone"), "%q is no time zone; write one like Europe/Berlin, or UTC", b.Zone)
		for _, model := range sortedKeys(b.ModelPrices) {
			price := b.ModelPrices[model]
			k.must(price >= 0 && price <= 1e6 && !math.IsNaN(price), where("model_prices."+model), "the price of a GPU hour must be 0 (free) to 1e6, got %v", price)
		}
	}
}

// cellBudgets notes the budgets that cannot be carried out: the cells of a virtual cluster are its tenant's own.
func (c *Config) cellBudgets() Problems {
	k := &checker{c: c}
	for _, tenant := range sortedKeys(c.Budgets) {
		b := c.Budgets[tenant]
		has := c.from.vcs != nil && slices.ContainsFunc(c.from.vcs.Cells.VCs, func(v cluster.VC) bool { return v.Name == tenant })
		k.must(!has || b.atEnd() == string(spending.Warn), "budgets."+tenant,
			"%s has a virtual cluster in %s, whose cells are its own whatever it has used; write at_end: warn, or remove the virtual cluster", tenant, k.where("cells.file", c.Cells.File))
	}
	return k.problems
}
