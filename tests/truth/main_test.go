package truth

import (
	"testing"

	_ "github.com/fairlease/fairlease/research/papers"
	"github.com/fairlease/fairlease/tests/seeds"
)

func TestMain(m *testing.M) { seeds.Main(m) }
