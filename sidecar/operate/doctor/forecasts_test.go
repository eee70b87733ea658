package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
)

// Kinds of statements that surely miss what they promise are a warning, and parts that do are named.
func TestForecastsThatKeepTheirWord(t *testing.T) {
	kept := []forecast.Coverage{
		{Kind: "waiting_start", Statements: 1200, Forecasts: 56, Percent: 78, Low: 70, High: 84},
		{Kind: "running_end", Statements: 3000, Forecasts: 56, Percent: 66, Low: 62, High: 70},
		{Kind: "waiting_start", By: "tenant", Class: "nlp", Statements: 90, Forecasts: 20, Percent: 50, Low: 40, High: 60},
		{Kind: "waiting_start", By: "gpus", Class: "2-8", Statements: 90, Forecasts: 20, Percent: 70, Low: 60, High: 78},
	}
	for _, x := range []struct {
		text string
		want []string
	}{
		{"", []string{
			"starts of waiting jobs ok 78 % (70 to 84) of 1200 statements of 56 forecasts kept their word; 80 % are promised; beyond 75 to 85 %: starts of waiting jobs of tenant nlp 50 % (40 to 60)",
			"ends of running jobs warn 66 % (62 to 70) of 3000 statements of 56 forecasts kept their word; 80 % are promised",
		}},
		{"forecast: {every: 0}\n", nil},
	} {
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, []byte("partitions: [gpu]\n"+x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range doctor.Check(cfg, &doctor.Seen{Database: doctor.Database{Kept: kept}}) {
			if f.Area == "forecasts" {
				got = append(got, f.Check+" "+f.Level+" "+f.Found)
			}
		}
		if strings.Join(got, "\n") != strings.Join(x.want, "\n") {
			t.Errorf("%q: %q", x.text, got)
		}
	}
}
