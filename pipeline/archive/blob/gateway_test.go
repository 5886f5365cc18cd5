package blob_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"palimpsest/cmd/palimpsest/buildtest"
)

// gateway is versitygw, an S3 server that keeps objects in a directory, in the version that
// deploy/tools/versitygw pins. The first test that needs it starts it.
var gateway struct {
	start   sync.Once
	err     error
	root    string // a folder in it is a bucket
	address string
	process *exec.Cmd
}

func TestMain(m *testing.M) {
	code := m.Run()
	if gateway.process != nil {
		_ = gateway.process.Process.Kill()
		_ = gateway.process.Wait()
	}
	_ = os.RemoveAll(filepath.Dir(gateway.root))
	os.Exit(code)
}

// store returns the URL of a new bucket of a real S3 server.
func store(t *testing.T) string {
	t.Helper()
	gateway.start.Do(func() { gateway.err = startGateway(buildtest.Versitygw(t)) })
	if gateway.err != nil {
		t.Fatalf("versitygw: %v", gateway.err)
	}
	bucket := "originals-" + uuid.NewString()
	if err := os.Mkdir(filepath.Join(gateway.root, bucket), 0o700); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("s3://key:secret@%s?endpoint=http://%s", bucket, gateway.address)
}

func startGateway(binary string) error {
	folder, err := os.MkdirTemp("", "palimpsest-versitygw")
	if err != nil {
		return err
	}
	gateway.root = filepath.Join(folder, "buckets")
	about := filepath.Join(folder, "metadata")
	for _, made := range []string{gateway.root, about} {
		if err := os.Mkdir(made, 0o700); err != nil {
			return err
		}
	}
	// It does not say which port it takes where it may choose.
	free, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	gateway.address = free.Addr().String()
	if err := free.Close(); err != nil {
		return err
	}
	gateway.process = exec.Command(binary, "--port", gateway.address, "--access", "key", "--secret", "secret",
		"posix", "--sidecar", about, gateway.root)
	output, err := gateway.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := gateway.process.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "http://"+gateway.address) {
			go func() { // what it says of each request
				for lines.Scan() {
				}
			}()
			return nil
		}
	}
	return fmt.Errorf("it does not listen: %w", gateway.process.Wait())
}
