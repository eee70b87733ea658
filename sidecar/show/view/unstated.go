package view

import (
	"bytes"
	"regexp"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Some numbers of a round stand for something that is none: the degree of a claimant that received without being due, and the
// span behind of one that is due nothing. In JSON for people and programs they are null.
var (
	unstated = map[string]string{strconv.FormatInt(int64(cluster.Infinite), 10): "null", strconv.FormatInt(int64(cluster.DueNothing), 10): "null"}
	sentinel = regexp.MustCompile(`("[a-z_]*(?:rho|behind)[a-z_]*": ?)(-?\d{19})\b`)
	absent   = regexp.MustCompile(`("(?:rho|rho_all|rho_millionths|rho_all_millionths|behind|other_behind)": ?)null`)
)

// Unstate makes numbers null that stand for something else, in JSON.
func Unstate(text []byte) []byte {
	some := false
	for number := range unstated {
		some = some || bytes.Contains(text, []byte(number))
	}
	if !some {
		return text
	}
	return sentinel.ReplaceAllFunc(text, func(found []byte) []byte {
		m := sentinel.FindSubmatch(found)
		if null, ok := unstated[string(m[2])]; ok {
			return append(bytes.Clone(m[1]), null...)
		}
		return found
	})
}

// Restate is the inverse of Unstate.
func Restate(text []byte) []byte {
	return absent.ReplaceAllFunc(text, func(found []byte) []byte {
		key := absent.FindSubmatch(found)[1]
		number := int64(cluster.DueNothing)
		if bytes.Contains(key, []byte("rho")) {
			number = int64(cluster.Infinite)
		}
		return strconv.AppendInt(bytes.Clone(key), number, 10)
	})
}
