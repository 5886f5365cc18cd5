package batchdb_test

import (
	"errors"
	"testing"

	"palimpsest/pipeline/batchdb"
)

func TestWrapfSaysWhatFailed(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection refused")
	err := batchdb.Wrapf(cause, "rename workspace %d", 7)
	if err == nil || err.Error() != "rename workspace 7: connection refused" || !errors.Is(err, cause) {
		t.Errorf("%v, want what failed before its cause", err)
	}
	if err := batchdb.Wrapf(nil, "rename workspace %d", 7); err != nil {
		t.Errorf("%v without a cause", err)
	}
}
