package breaker

import "flag"

// The seed is fixed so that a failing property fails again, unless -rapid.seed is given.
func init() { _ = flag.Set("rapid.seed", "1") }
