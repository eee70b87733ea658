package report

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// JSON writes every score, series included, as an array with one run per line. The error is w's.
func JSON(w io.Writer, runs []score.Scores) error {
	out := []byte("[")
	for i, s := range runs {
		line, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, '\n'), line...)
	}
	_, err := w.Write(append(out, "\n]\n"...))
	return err
}

// CSV writes every score, one number per row: trace, nodes, gpus, scheduler, tenant (empty: of
// all), score, value, saves (the assumption of how jobs save). A score has its JSON name, with
// its unit; series, CDFs and audits are in the JSON only. The error is w's.
func CSV(w io.Writer, runs []score.Scores) error {
	c := csv.NewWriter(w)
	if err := c.Write([]string{"trace", "nodes", "gpus", "scheduler", "tenant", "score", "value", "saves"}); err != nil {
		return err
	}
	for _, s := range runs {
		run := []string{chart.Cell(s.Trace), strconv.Itoa(s.Nodes), strconv.Itoa(s.GPUs), chart.Cell(s.Scheduler)}
		write := func(tenant string, x any) error {
			for _, n := range numbers("", reflect.ValueOf(x)) {
				if err := c.Write(append(run[:4:4], chart.Cell(tenant), n.name, n.value, s.Saves)); err != nil {
					return err
				}
			}
			return nil
		}
		if err := write("", s); err != nil {
			return err
		}
		for _, t := range s.Tenants {
			if err := write(t.Tenant, t); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

// number is a score with its JSON path.
type number struct{ name, value string }

// numbers finds every number of a value, in the order of its fields, so that a new score is
// automatically in the CSV. It enters only the slices of periods and models.
func numbers(path string, v reflect.Value) []number {
	switch v.Kind() {
	case reflect.Struct:
		var out []number
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			out = append(out, numbers(join(path, name), v.Field(i))...)
		}
		return out
	case reflect.Slice:
		var out []number
		switch list := v.Interface().(type) {
		case []score.Period:
			for _, p := range list {
				out = append(out, numbers(join(path, strconv.FormatFloat(p.Hours, 'f', -1, 64)+"h"), reflect.ValueOf(p))...)
			}
		case []score.OnModel:
			for _, m := range list {
				out = append(out, numbers(join(path, m.Model), reflect.ValueOf(m))...)
			}
		}
		return out
	case reflect.Int, reflect.Int64:
		return []number{{path, strconv.FormatInt(v.Int(), 10)}}
	case reflect.Float64:
		return []number{{path, strconv.FormatFloat(v.Float(), 'g', -1, 64)}}
	}
	return nil
}

// join adds a field to a path; an embedded struct has no name.
func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}
