package experiment

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// mostWeight is the largest weight of a tenant, as in the configuration.
const mostWeight = 1e12

// EqualWeights gives every tenant of a load the same weight.
func EqualWeights(c Census) map[string]int64 {
	out := map[string]int64{}
	for _, t := range c.Tenants {
		out[t.Tenant] = 1
	}
	return out
}

// DemandWeights gives every tenant its part of the load's GPU time, in GPU-minutes.
func DemandWeights(c Census) map[string]int64 {
	out := map[string]int64{}
	for _, t := range c.Tenants {
		out[t.Tenant] = min(int64(t.Demand)/int64(cluster.Minute)+1, mostWeight)
	}
	return out
}

// ReadWeights reads lines of a tenant and its weight, separated by a comma, a colon or spaces. It
// skips empty lines, those that begin with #, and a first line without a number, which is a
// header. name is the file's name in errors.
func ReadWeights(r io.Reader, name string) (map[string]int64, error) {
	out := map[string]int64{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\xef\xbb\xbf"))
		if text == "" || text[0] == '#' {
			continue
		}
		fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",:; \t", r) })
		weight, err := int64(0), error(nil)
		if len(fields) == 2 {
			weight, err = strconv.ParseInt(fields[1], 10, 64)
		}
		switch {
		case len(fields) != 2 || err != nil && len(out) > 0 || err == nil && (weight < 0 || weight > mostWeight):
			return nil, fmt.Errorf("%s: line %d: %q is no tenant with a weight: write them as in vision,64, weights as whole numbers", name, n, text)
		case err != nil:
			continue // the header
		}
		if _, twice := out[fields[0]]; twice {
			return nil, fmt.Errorf("%s: line %d: tenant %s has a weight already", name, n, fields[0])
		}
		out[fields[0]] = weight
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: names no tenant: write a line like vision,64 for each", name)
	}
	return out, nil
}

// Missing lists the tenants of a load that have no weight.
func Missing(c Census, weights map[string]int64) []string {
	var out []string
	for _, t := range c.Tenants {
		if _, ok := weights[t.Tenant]; !ok {
			out = append(out, t.Tenant)
		}
	}
	return out
}
