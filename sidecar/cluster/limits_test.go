package cluster

import (
	"slices"
	"testing"
)

func TestParseLicenses(t *testing.T) {
	for _, c := range []struct {
		request string
		needs   []LicenseNeed
		either  bool
	}{
		{"", nil, false},
		{"matlab", []LicenseNeed{{"matlab", 1}}, false},
		{"matlab=2", []LicenseNeed{{"matlab", 2}}, false},
		{"matlab:2,ansys;abaqus@flex:3", []LicenseNeed{{"matlab", 2}, {"ansys", 1}, {"abaqus@flex", 3}}, false},
		{"matlab:1,matlab:2", []LicenseNeed{{"matlab", 3}}, false},
		{"matlab|ansys:2", []LicenseNeed{{"matlab", 1}, {"ansys", 2}}, true},
		{"matlab|ansys:0", []LicenseNeed{{"matlab", 1}}, false},
		{"matlab:0", nil, false},
		{"matlab:99999999999999999999,matlab:99999999999999999999", []LicenseNeed{{"matlab", mostLicenses}}, false},
		{"matlab:-1", nil, false},
		{"matlab:x", nil, false},
		{"a,b|c", nil, false},
		{"cooling(v[1-2]):3", nil, false},
		{",:1,|", nil, false},
	} {
		if needs, either := ParseLicenses(c.request); !slices.Equal(needs, c.needs) || either != c.either {
			t.Errorf("%q: %v, %v; want %v, %v", c.request, needs, either, c.needs, c.either)
		}
	}
}

// Whatever a user writes, counts are positive and small enough to be added.
func FuzzParseLicenses(f *testing.F) {
	for _, s := range []string{"matlab:2,ansys", "a|b=3", "x(v1):2", "m:99999999999999999999", "::,,||"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		needs, either := ParseLicenses(s)
		for i, n := range needs {
			if n.Count <= 0 || n.Count > mostLicenses || n.Name == "" || slices.ContainsFunc(needs[:i], func(o LicenseNeed) bool { return o.Name == n.Name }) {
				t.Errorf("%q: %v", s, needs)
			}
		}
		if either && len(needs) < 2 {
			t.Errorf("%q has alternatives: %v", s, needs)
		}
	})
}

// Limits that were not read are the last known ones as a whole, with what they mean.
func TestLastKnownLimitsAreWhole(t *testing.T) {
	known := Limits{Read: 5, Safe: true, QOS: []QOS{{Name: "q"}}}
	var l Limits
	if !l.Recall(&known) || !l.Safe || l.Read != 5 || len(l.QOS) != 1 {
		t.Errorf("%+v", l)
	}
	l = Limits{Read: 7}
	if l.Recall(&known) || l.Safe || l.Read != 7 {
		t.Errorf("limits that were read are replaced: %+v", l)
	}
}
