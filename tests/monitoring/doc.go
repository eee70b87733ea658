// Package monitoring checks the alarms for Prometheus and the dashboards for Grafana: their form, and that what they ask for is
// there. tests/e2e asks a real Prometheus for every panel.
package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// Dashboard is a Grafana dashboard, in the parts that are checked.
type Dashboard struct {
	UID         string  `json:"uid"`
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Schema      int     `json:"schemaVersion"`
	Panels      []Panel `json:"panels"`
	Templating  struct {
		List []Variable `json:"list"`
	} `json:"templating"`
}

// Panel is one panel.
type Panel struct {
	ID          int                      `json:"id"`
	Title       string                   `json:"title"`
	Description string                   `json:"description"`
	Type        string                   `json:"type"`
	Datasource  Datasource               `json:"datasource"`
	Place       struct{ X, Y, W, H int } `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []Target `json:"targets"`
}

// Datasource names where a query goes.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Target is a query of a panel.
type Target struct {
	Datasource Datasource `json:"datasource"`
	Expr       string     `json:"expr"`
	Legend     string     `json:"legendFormat"`
	Ref        string     `json:"refId"`
}

// Variable is a choice above the panels.
type Variable struct {
	Name  string          `json:"name"`
	Type  string          `json:"type"`
	Query json.RawMessage `json:"query"`
}

// Dashboards reads the dashboards of a folder.
func Dashboards(folder string) ([]Dashboard, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []Dashboard
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var d Dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// Plain gives the query with all variables chosen, and rates over window.
func (t *Target) Plain(window string) string {
	return strings.NewReplacer("$__rate_interval", window, "$cluster", ".*", "$account", ".*", "$model", ".*").Replace(t.Expr)
}
