package slurm_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/slurm"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// verify has slurmctld check tokens of users: good ones, and all that a user may try.
func verify(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	v, err := slurm.NewVerifier(slurm.Config{Address: "unix://" + c.RestSocket()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	if err := v.Checks(t.Context()); err != nil {
		t.Errorf("slurmrestd takes a token that nobody made: %v", err)
	}
	made := func(user string, good time.Duration) string {
		token, err := c.Token(t.Context(), user, good)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(strings.TrimSpace(token), "SLURM_JWT=")
	}
	alice, text := made("alice", time.Hour), base64.RawURLEncoding.EncodeToString
	head, rest, _ := strings.Cut(alice, ".")
	body, signature, _ := strings.Cut(rest, ".")
	root := text([]byte(`{"exp":9999999999,"iat":1700000000,"sun":"root"}`))
	for _, x := range []struct {
		what, user, token string
		want              bool
	}{
		{"a good token", "alice", alice, true},
		{"a token of root", "root", made("root", time.Hour), true},
		{"a token of another user", "bob", alice, false},
		{"root's name on it", "root", alice, false},
		{"root in it", "root", head + "." + root + "." + signature, false},
		{"another signature", "alice", head + "." + body + "." + text(make([]byte, 32)), false},
		{"no signature", "alice", text([]byte(`{"alg":"none"}`)) + "." + body + ".", false},
		{"nonsense", "alice", "x.y.z", false},
	} {
		if got, err := v.Takes(t.Context(), x.user, x.token); got != x.want || err != nil {
			t.Errorf("%s: %v, %v", x.what, got, err)
		}
	}
	short := made("alice", 2*time.Second)
	(&live{T: t}).eventually("Slurm refuses a token that has expired", func() bool {
		taken, err := v.Takes(t.Context(), "alice", short)
		return !taken && err == nil
	}, func() string { return "the token is still accepted" })
}

// trusting has slurmrestd answer by rest_auth/local, whatever the token is: no token is taken then.
func trusting(l *live) {
	v, err := slurm.NewVerifier(slurm.Config{Address: "unix://" + l.slurm.RestSocket()})
	if err != nil {
		l.Fatal(err)
	}
	defer v.Close()
	if taken, err := v.Takes(l.Context(), testcluster.Operator, "e30.e30.Z29vZA"); taken || err == nil || !strings.Contains(err.Error(), "without looking at tokens") {
		l.Errorf("a token that nobody made: %v, %v", taken, err)
	}
	if err := v.Checks(l.Context()); err == nil {
		l.Error("it counts as one that checks tokens")
	}
}
