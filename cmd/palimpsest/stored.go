package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants/datakeys"
)

// stored holds the stores of sessions and their originals.
type stored struct {
	archiveKeys *archive.Keys
	sessions    *sessiondb.Store
	originals   *archivedb.DB
	mover       *archivedb.Mover
}

// openStored opens the stores of sessions, and schedules their upkeep.
func openStored(b base) (stored, error) {
	dataKeys := datakeys.New(b.db.DataKeys, b.vault)
	keys := archive.NewKeys(dataKeys)
	sessions := sessiondb.New(b.db, keys).WithJobs(b.work)
	due := upkeep{db: b.db, keys: dataKeys, vault: b.vault, rotation: newRotation(b.registry, b.vault.Masters()), sessions: sessions, log: b.Log, now: b.Now}
	b.work.Every("upkeep", upkeepEvery, upkeepTimeout, due.run)
	b.work.Every("fold_sums", foldEvery, foldTimeout, b.db.Usage.FoldSums)
	b.work.Every("partitions", upkeepEvery, partitionsTimeout, newPartitions(b))
	originals, mover, err := openArchive(b, keys)
	return stored{archiveKeys: keys, sessions: sessions, originals: originals, mover: mover}, err
}

// openArchive opens the archive: in the database, or with its bytes moved to a
// bucket once they are durable.
func openArchive(b base, keys *archive.Keys) (*archivedb.DB, *archivedb.Mover, error) {
	originals := archivedb.New(b.db, keys)
	var bucket archive.Bucket
	if b.Config.Storage.BlobURL != "" {
		var err error
		if bucket, err = blob.Open(b.Config.Storage.BlobURL); err != nil {
			return nil, nil, fmt.Errorf("PALIMPSEST_BLOB_URL: %w", err)
		}
		originals = originals.WithBucket(bucket)
	}
	mover := archivedb.NewMover(b.db, keys, bucket)
	b.health.parts.WatchArchive(bucket, mover.WaitsSince)
	volume := newVolume(b.registry)
	if bucket == nil {
		return originals, mover, nil
	}
	b.work.Share("archive", movePace(), moveTimeout, func(ctx context.Context) error {
		_, err := mover.Pass(ctx)
		now, countErr := mover.Volume(ctx)
		if countErr == nil {
			volume.set(now)
		}
		return errors.Join(err, countErr)
	})
	return originals, mover, nil
}

// openIndex creates the index that searches the archive. In the background it indexes the archive, and
// embeds it if the workspace wants that.
func openIndex(b base, of stored, embedder archive.Embedder) (*archivedb.Index, error) {
	index, err := archivedb.NewIndex(of.originals, formats.Parse).WithEmbeddings(embedder)
	if err != nil {
		return nil, err
	}
	b.work.Share("index", indexPace(), indexTimeout, func(ctx context.Context) error {
		for {
			if done, err := index.IndexPending(ctx, indexLanes); done == 0 || err != nil {
				return err
			}
		}
	})
	b.work.Every("embeddings", embedEvery, embedTimeout, func(ctx context.Context) error {
		_, err := index.EmbedPending(ctx)
		return err
	})
	b.health.parts.WatchIndex(index.WaitsSince)
	return index, nil
}

// volume reports the size of the archive by place, as of the end of the last pass.
type volume struct{ pending, segments, bytes, dead prometheus.Gauge }

func newVolume(registry prometheus.Registerer) volume {
	v := volume{
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "palimpsest_archive_pending_objects", Help: "Archived messages that are not in the bucket yet, at the end of the last pass.",
		}),
		segments: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "palimpsest_archive_segments", Help: "Objects of the bucket that hold archived messages.",
		}),
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "palimpsest_archive_segment_bytes", Help: "Bytes of the segments in the bucket.",
		}),
		dead: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "palimpsest_archive_dead_bytes", Help: "Bytes of the segments that belong to deleted messages and are yet to be taken out.",
		}),
	}
	registry.MustRegister(v.pending, v.segments, v.bytes, v.dead)
	return v
}

func (v volume) set(now archivedb.Volume) {
	v.pending.Set(float64(now.Pending))
	v.segments.Set(float64(now.Segments))
	v.bytes.Set(float64(now.Bytes))
	v.dead.Set(float64(now.Dead))
}
