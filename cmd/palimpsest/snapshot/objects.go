package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline/archive"
)

// objectsAtOnce limits the objects in memory at once.
const objectsAtOnce = 8

// backUpObjects copies every object of the bucket into a backup.
func backUpObjects(ctx context.Context, source Source, dir string, progress Progress) (Objects, error) {
	switch {
	case source.Bucket == nil:
		return Objects{Where: ObjectsNone}, nil
	case source.LeaveObjects:
		return Objects{Where: ObjectsElsewhere}, nil
	}
	to, err := createFile(dir, objectsFile, silent)
	if err != nil {
		return Objects{}, err
	}
	if err := os.Mkdir(filepath.Join(dir, objectsDir), directoryMode); err != nil {
		return Objects{}, fmt.Errorf("backup: %w", err)
	}
	objects := Objects{Where: ObjectsHere}
	var mu sync.Mutex
	copies, copying := errgroup.WithContext(ctx)
	copies.SetLimit(objectsAtOnce)
	listErr := source.Bucket.Names(copying, func(name string) error {
		copies.Go(func() error {
			content, err := source.Bucket.Get(copying, name)
			if errors.Is(err, archive.ErrNotFound) {
				return nil // deleted since it was listed
			}
			if err == nil {
				err = writeObject(dir, name, content)
			}
			if err != nil {
				return fmt.Errorf("backup of object %s: %w", name, err)
			}
			sum := sha256.Sum256(content)
			mu.Lock()
			defer mu.Unlock()
			objects.Count++
			objects.Bytes += int64(len(content))
			progress("objects", objects.Count, objects.Bytes)
			_, err = fmt.Fprintf(to, "%s  %s/%s\n", hex.EncodeToString(sum[:]), objectsDir, name)
			return err
		})
		return copying.Err()
	})
	err = copies.Wait()
	if err == nil {
		err = listErr
	}
	list, closeErr := to.close(objectsFile)
	objects.List = &list
	return objects, errors.Join(err, closeErr)
}

func writeObject(dir, name string, content []byte) error {
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) || strings.ContainsAny(name, "\n\\") {
		return errors.New("its name cannot be that of a file")
	}
	path := filepath.Join(dir, objectsDir, local)
	if err := os.MkdirAll(filepath.Dir(path), directoryMode); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode) //nolint:gosec // local to the backup
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

// each reads every object of a backup, several at once, and returns an error if one does not match the
// list.
func (o Objects) each(ctx context.Context, dir string, use func(ctx context.Context, name string, content []byte) error) error {
	list, err := os.Open(filepath.Join(dir, o.List.Name)) //nolint:gosec // the operator names the directory
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() { _ = list.Close() }()
	uses, using := errgroup.WithContext(ctx)
	uses.SetLimit(objectsAtOnce)
	lines := bufio.NewScanner(list)
	for lines.Scan() && using.Err() == nil {
		sum, name, found := strings.Cut(lines.Text(), "  "+objectsDir+"/")
		if !found || !filepath.IsLocal(filepath.FromSlash(name)) {
			return errors.Join(fmt.Errorf("%s has the wrong line %q", o.List.Name, lines.Text()), uses.Wait())
		}
		uses.Go(func() error {
			content, err := os.ReadFile(filepath.Join(dir, objectsDir, filepath.FromSlash(name))) //nolint:gosec // local to the backup
			if err != nil {
				return fmt.Errorf("backup: %w", err)
			}
			if is := sha256.Sum256(content); hex.EncodeToString(is[:]) != sum {
				return fmt.Errorf("object %s is damaged: it does not have the SHA-256 %s", name, sum)
			}
			return use(using, name, content)
		})
	}
	return errors.Join(uses.Wait(), lines.Err())
}

// restore puts the objects of a backup into a bucket. An object already there must be identical.
func (o Objects) restore(ctx context.Context, dir string, bucket archive.Bucket, progress Progress) error {
	var mu sync.Mutex
	var count, size int64
	return o.each(ctx, dir, func(ctx context.Context, name string, content []byte) error {
		err := bucket.Put(ctx, name, content)
		if errors.Is(err, archive.ErrTaken) {
			var there []byte
			if there, err = bucket.Get(ctx, name); err == nil && !bytes.Equal(there, content) {
				err = errors.New("the bucket has another object under this name")
			}
		}
		if err != nil {
			return fmt.Errorf("restore object %s: %w", name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		count++
		size += int64(len(content))
		progress("objects", count, size)
		return nil
	})
}
