package inspection

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/tenants"
	"palimpsest/tenants/mail"
)

// littleSpace is the minimum of free bytes in the data directory, because the log of the embedded database
// and of unrecorded exchanges grow there.
const littleSpace = 1 << 30

// checkSettings warns about valid settings with a risk.
func checkSettings(config settings.Config) result {
	var open []string
	host, _, _ := net.SplitHostPort(config.Serving.Addr)
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && config.Serving.PublicURL == "" {
		open = append(open, "PALIMPSEST_PUBLIC_URL is not set, so links in mails lead to "+config.Serving.Addr+".")
	}
	if strings.HasPrefix(config.Serving.PublicURL, "http://") && !isLocalURL(config.Serving.PublicURL) {
		open = append(open, "PALIMPSEST_PUBLIC_URL is not https, so passwords and API keys travel unencrypted.")
	}
	if config.Serving.AllowPrivateUpstreams && config.Serving.PublicURL != "" && !isLocalURL(config.Serving.PublicURL) {
		open = append(open, "PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS lets every workspace reach addresses of your network.")
	}
	if config.Demos.PublicDemo != "" && config.Demos.PublicDemo == config.Serving.PublicURL {
		open = append(open, "PALIMPSEST_PUBLIC_DEMO is the address of this installation, not of the demo.")
	}
	if strings.HasPrefix(config.Demos.PublicDemo, "http://") && !isLocalURL(config.Demos.PublicDemo) {
		open = append(open, "PALIMPSEST_PUBLIC_DEMO is not https.")
	}
	if len(open) > 0 {
		return warned("Set what is meant; see docs/operations.md.", "%s", strings.Join(open, " "))
	}
	return passed("valid")
}

func isLocalURL(address string) bool {
	rest, _ := strings.CutPrefix(address, "http://")
	rest, _ = strings.CutPrefix(rest, "https://")
	for _, local := range []string{"localhost", "127.", "[::1]"} {
		if strings.HasPrefix(rest, local) {
			return true
		}
	}
	return false
}

// checkDataDir checks whether files can be written to the data directory, and the space for them.
func checkDataDir(dir string) result {
	existing := dir
	for {
		if _, err := os.Stat(existing); err == nil || existing == filepath.Dir(existing) {
			break
		}
		existing = filepath.Dir(existing)
	}
	file, err := os.CreateTemp(existing, ".palimpsest-check-*")
	if err != nil {
		return failed("Let the user that runs the program write there, or set PALIMPSEST_DATA_DIR.", "%s cannot be written to: %v", existing, errors.Unwrap(err))
	}
	err = errors.Join(file.Close(), os.Remove(file.Name()))
	if err != nil {
		return failed("Look at the disk.", "%v", err)
	}
	free, err := freeSpace(existing)
	if err != nil {
		return warned("Look at the disk.", "its free space is unknown: %v", err)
	}
	return spaceResult(dir, existing, free)
}

// spaceResult judges the free bytes on the disk of the data directory. existing is the part of its path
// that exists.
func spaceResult(dir, existing string, free uint64) result {
	if free < littleSpace {
		return warned("Make room: PostgreSQL stops when its disk is full.", "%s has %d MB left", existing, free>>20)
	}
	if existing != dir {
		return passed("%s is created by the first start, %d GB free", dir, free>>30)
	}
	return passed("%s, %d GB free", dir, free>>30)
}

// outerExaminations check the product's dependencies other than its database.
func (e examiner) outerExaminations() []examination {
	list := []examination{
		{"Blob store", func(ctx context.Context) result { return checkBucket(ctx, e.Config.Storage.BlobURL) }},
		{"Redis", e.checkRedis},
		{"Mail", func(ctx context.Context) result { return checkMail(ctx, e.Config.Accounts) }},
	}
	for _, provider := range tenants.Providers() {
		list = append(list, examination{"Provider " + string(provider), func(ctx context.Context) result { return e.checkProvider(ctx, provider) }})
	}
	return list
}

const bucketAdvice = "Check PALIMPSEST_BLOB_URL, and that its key may put, get and delete objects."

func checkBucket(ctx context.Context, address string) result {
	if address == "" {
		return off("originals stay in the database")
	}
	bucket, err := blob.Open(address)
	if err != nil {
		return failed(bucketAdvice, "PALIMPSEST_BLOB_URL %v", err)
	}
	return tryBucket(ctx, bucket)
}

// tryBucket puts an object into the bucket, reads it and removes it.
func tryBucket(ctx context.Context, bucket archive.Bucket) result {
	const advice = bucketAdvice
	name, content := probeName+"-"+uuid.NewString(), []byte("palimpsest check")
	if err := bucket.Put(ctx, name, content); err != nil {
		return failed(advice, "an object cannot be put: %v", err)
	}
	read, err := bucket.Get(ctx, name)
	if err == nil && !bytes.Equal(read, content) {
		err = errors.New("other bytes came back")
	}
	if err != nil {
		return failed(advice, "an object cannot be read: %v", errors.Join(err, bucket.Delete(ctx, name)))
	}
	if err := bucket.Delete(ctx, name); err != nil {
		return failed(advice, "an object cannot be deleted, so that deleted sessions would stay: %v", err)
	}
	return passed("puts, gets and deletes")
}

func (e examiner) checkRedis(ctx context.Context) result {
	if e.Config.Storage.RedisURL == "" {
		return off("each process applies limits on its own; set REDIS_URL if you run several")
	}
	const advice = "Check REDIS_URL and that Redis runs. Until it answers, each process applies limits on its own."
	client, err := setup.OpenRedis(e.Inputs)
	if err != nil {
		return failed(advice, "%v", err)
	}
	// Without it the client would retry and log each failure.
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", client.Options().Addr)
	if err != nil {
		return failed(advice, "%v", err)
	}
	_ = connection.Close()
	name := "palimpsest:check:" + uuid.NewString()
	if err := client.Set(ctx, name, name, time.Minute).Err(); err != nil {
		return failed(advice, "a value cannot be written: %v", err)
	}
	// The limits use scripts.
	read, err := client.Eval(ctx, "return redis.call('GET', KEYS[1])", []string{name}).Text()
	if err == nil && read != name {
		err = errors.New("another value came back")
	}
	if err != nil {
		return failed(advice, "a script cannot read a value: %v", err)
	}
	removed, err := client.Del(ctx, name).Result()
	if err == nil && removed != 1 {
		err = errors.New("it is gone already")
	}
	if err != nil {
		return failed(advice, "a value cannot be removed: %v", err)
	}
	return passed("reads and writes")
}

// checkMail connects to the mail server and logs in.
func checkMail(ctx context.Context, accounts settings.Accounts) result {
	if accounts.SMTPURL == "" {
		return off("mails are kept, not sent; set SMTP_URL to send them")
	}
	const advice = "Check SMTP_URL. Mails wait until the server takes them."
	sender, err := mail.NewSMTP(accounts.SMTPURL, accounts.MailFrom, nil)
	if err != nil {
		return failed(advice, "SMTP_URL %v", err)
	}
	if err := sender.Check(ctx); err != nil {
		return failed(advice, "%v", err)
	}
	return passed("the server takes the login; nothing was sent")
}

// checkProvider asks a provider for its models without a key, since any answer shows that it can be
// reached.
func (e examiner) checkProvider(ctx context.Context, provider tenants.Provider) result {
	client := upstream.New(e.Config.Serving.AllowPrivateUpstreams)
	defer client.Close()
	began := time.Now()
	response, err := client.Send(ctx, upstream.Request{Method: http.MethodGet, Path: "/v1/models", Header: http.Header{}}, upstream.Target{Provider: provider})
	if err != nil {
		return warned("Check DNS and firewall of this machine if workspaces use this provider.", "%v", err)
	}
	if err := response.Body.Close(); err != nil {
		return warned("Try again.", "%v", err)
	}
	return passed("answers within %s", lasts(time.Since(began)))
}
