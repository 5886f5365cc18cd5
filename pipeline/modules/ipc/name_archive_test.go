package ipc_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/modules/ipc"
)

// C4: what a projection calls its archive is the link of the history that it stands
// for, no matter who renders it.
func TestAProjectionNamesTheArchiveByTheHistoryItStandsFor(t *testing.T) {
	t.Parallel()

	c := &talk{}
	for i := range 30 {
		c.user(fmt.Sprintf("Step %d.", i)).run(fmt.Sprintf("cat file%d", i), words(700))
	}
	deep := func(config *ipc.Config) { config.CompressTo, config.PreserveTokens = 0.1, 0 }
	exchange, sealed := epoch(t, c.body(), 20_000, deep)
	if exchange.Lane.Projection == nil {
		t.Fatalf("no epoch: %+v", exchange.Report)
	}
	name := archive.NameOf(exchange.Lane.Projection.Chain)
	if bytes.Count(sealed, []byte(" of archive "+string(name))) != 1 || !bytes.Contains(sealed, []byte("recall_get with "+string(name)+"#12")) {
		t.Errorf("the frame does not name %s: %.600s", name, sealed)
	}
	if _, again := epoch(t, c.body(), 20_000, deep); !bytes.Equal(sealed, again) {
		t.Error("rendered again, the prompt is another")
	}
}

// C4: without a frame the newest placeholder names the archive, and all before it
// stays as it is when the next epoch cuts what follows.
func TestWithoutAFrameTheNewestPlaceholderNamesTheArchive(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 20_000, func(config *ipc.Config) { config.DeepestLevel = 1 })
	c := &talk{}
	var before []byte
	epochs := 0
	for i := range 60 {
		exchange, sealed := send(t, lane, c.user(fmt.Sprintf("Step %d.", i)).run(fmt.Sprintf("cat file%d", i), words(600)).body())
		if lane.Epochs == epochs {
			continue
		}
		epochs = lane.Epochs
		text := string(sealed)
		name := string(archive.NameOf(exchange.Lane.Projection.Chain))
		at := strings.Index(text, " of archive "+name)
		if at < 0 || strings.Count(text, "recall_get") != 1 || strings.Contains(text[at:], "characters archived") {
			t.Fatalf("epoch %d: the newest placeholder does not name %s alone", epochs, name)
		}
		if before != nil {
			kept, _, _ := strings.Cut(string(before), " of archive ")
			if !strings.HasPrefix(text, kept) {
				t.Fatalf("epoch %d changed what stood before the name", epochs)
			}
			return
		}
		before = sealed
	}
	t.Fatalf("%d epochs, version %d", epochs, ipc.RenderVersion)
}
