package view

import (
	"encoding/json"
	"fmt"

	"github.com/fairlease/fairlease/sidecar/config"
)

// ConfigTable lists the effective values; defaults are dim.
func ConfigTable(values []config.Value) *Table {
	t := &Table{Head: []string{"KEY", "VALUE", "ORIGIN"}}
	for _, v := range values {
		t.Add(v.Key, valueText(v.Value), v.Origin)
	}
	t.Tint = func(row, _ int) string {
		if values[row].Origin == "default" {
			return "dim"
		}
		return ""
	}
	return t
}

// valueText gives a value as the file would have it.
func valueText(v any) string {
	if s, ok := v.(string); ok && s != "" {
		return s
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
