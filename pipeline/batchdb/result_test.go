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

func TestFirstReturnsFirstRowOrWhatIsMissing(t *testing.T) {
	t.Parallel()
	missing, failed := errors.New("not found"), errors.New("connection refused")
	if first, err := batchdb.First([]int{7, 8}, nil, missing); first != 7 || err != nil {
		t.Errorf("%d, %v, want 7", first, err)
	}
	if first, err := batchdb.First([]int{}, nil, missing); first != 0 || !errors.Is(err, missing) {
		t.Errorf("%d, %v, want what is missing", first, err)
	}
	if first, err := batchdb.First([]int{7}, failed, missing); first != 0 || !errors.Is(err, failed) || errors.Is(err, missing) {
		t.Errorf("%d, %v, want the query's error", first, err)
	}
}
