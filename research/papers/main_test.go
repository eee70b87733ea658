package papers_test

import (
	"testing"

	"github.com/fairlease/fairlease/tests/seeds"
)

func TestMain(m *testing.M) { seeds.Main(m) }
