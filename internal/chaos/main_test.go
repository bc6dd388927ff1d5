package chaos

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if code, child := Child(); child {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
