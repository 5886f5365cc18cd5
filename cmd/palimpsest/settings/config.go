// Package settings reads the settings of the program from the environment and a file, and checks them.
package settings

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"palimpsest/billing"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants/mail"
	"palimpsest/tenants/vault"
)

// Config holds every setting of the program. Only this package reads the environment and the config file; each
// part receives its own settings.
type Config struct {
	Serving  Serving
	Storage  Storage
	Accounts Accounts
	Demos    Demos

	Pipe                 string         // PALIMPSEST_PIPE, PRXY_PIPE
	WorkspaceConcurrency int            // PALIMPSEST_WORKSPACE_CONCURRENCY: open requests of a workspace
	Bounds               Bounds         // limits on all requests together
	Catalog              Catalog        // of models
	Billing              billing.Config // STRIPE_*; see billingSettings
	Traces               Traces         // OTEL_*
}

// Serving holds the settings of the program's addresses, its log and its end.
type Serving struct {
	Addr                  string // PALIMPSEST_ADDR
	AdminAddr             string // PALIMPSEST_ADMIN_ADDR; empty: off
	PublicURL             string // PALIMPSEST_PUBLIC_URL; empty: from Addr
	TrustedProxies        string // PALIMPSEST_TRUSTED_PROXIES; if empty, X-Forwarded-For is ignored
	AllowPrivateUpstreams bool   // PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS
	Role                  Role   // --role of serve
	LogFormat             string // PALIMPSEST_LOG_FORMAT: text or json
	Profiles              bool   // PALIMPSEST_PPROF: serve /debug/pprof on AdminAddr

	// DrainTimeout is how long open streams may continue after the program is told to stop.
	// PALIMPSEST_DRAIN_TIMEOUT
	DrainTimeout time.Duration

	// DrainDelay is how long the program still takes requests after it is told to stop and is no longer
	// ready, so that balancers notice. PALIMPSEST_DRAIN_DELAY
	DrainDelay time.Duration
}

// Storage holds the settings of the places where data is kept.
type Storage struct {
	DatabaseURL       string     // DATABASE_URL; empty: a private cluster below DataDir
	DatabaseAppURL    string     // DATABASE_APP_URL; empty: a login made from DatabaseURL
	DatabaseWorkerURL string     // DATABASE_WORKER_URL; empty: a login made from DatabaseURL
	DatabaseReadURL   string     // DATABASE_READ_URL; empty: pages read from the database itself
	Databases         []Database // DATABASE_URLS, in place of the database and the public URL; optional
	Host              string     // host of these settings' database, if there are several; else ""
	DataDir           string     // PALIMPSEST_DATA_DIR
	BlobURL           string     // PALIMPSEST_BLOB_URL; empty: the database
	RedisURL          string     // REDIS_URL; empty: in process
	SecretKey         string     // PALIMPSEST_SECRET_KEY; empty: generated into DataDir
	KeepRequestsDays  int        // PALIMPSEST_KEEP_REQUESTS_DAYS: days until requests without a session are dropped; 0: never
}

// Accounts holds the settings for the accounts of people.
type Accounts struct {
	SMTPURL              string // SMTP_URL; empty: mails are kept and shown at /dev/mail
	MailFrom             string // PALIMPSEST_MAIL_FROM; empty: SMTPURL names the sender
	RequireVerifiedEmail bool   // PALIMPSEST_REQUIRE_VERIFIED_EMAIL
	SignUp               SignUp // who may sign up
	OperatorContact      string // PALIMPSEST_OPERATOR_CONTACT: whom suspended workspaces may ask
}

// Demos holds the settings of demos.
type Demos struct {
	// Demo tells how to log in to an installation with demo data. Only the command demo sets it.
	Demo string

	PublicDemo string // PALIMPSEST_PUBLIC_DEMO: address of a public demo; optional

	// Visited is the address of the person whose workspace everyone may look at without a login. Only the
	// command demo sets it.
	Visited string
}

// DefaultConfig returns the settings of an installation without its own.
func DefaultConfig() Config {
	return Config{
		Serving: Serving{
			Addr: "127.0.0.1:8080", AdminAddr: "127.0.0.1:9090", Role: RoleAll, LogFormat: "text", DrainTimeout: 5 * time.Minute, DrainDelay: 5 * time.Second,
		},
		Storage:              Storage{DataDir: "./data"},
		Accounts:             Accounts{SignUp: SignUp{PerPlace: defaultSignUps, Workspaces: defaultWorkspaces}},
		Pipe:                 strings.Join(modules.Catalog().Default().Modules, ","),
		WorkspaceConcurrency: 200,
		Bounds:               DefaultBounds(),
		Billing:              billing.DefaultConfig(),
		Traces:               DefaultTraces(),
	}
}

// setting is one variable of the environment and the file.
type setting struct {
	name string
	set  func(*Config, string) error
}

// settings lists every setting by its name in the environment and the file.
func settings() []setting {
	text := func(field func(*Config) *string) func(*Config, string) error {
		return func(config *Config, value string) error { *field(config) = value; return nil }
	}
	return append(slices.Concat(databaseSettings(), signUpSettings(), boundSettings(), traceSettings(), billingSettings(), catalogSettings()), []setting{
		{"PALIMPSEST_ADDR", text(func(c *Config) *string { return &c.Serving.Addr })},
		{"PALIMPSEST_ADMIN_ADDR", text(func(c *Config) *string { return &c.Serving.AdminAddr })},
		{"PALIMPSEST_PUBLIC_URL", text(func(c *Config) *string { return &c.Serving.PublicURL })},
		{"PALIMPSEST_PUBLIC_DEMO", text(func(c *Config) *string { return &c.Demos.PublicDemo })},
		{"DATABASE_URL", text(func(c *Config) *string { return &c.Storage.DatabaseURL })},
		{"DATABASE_APP_URL", text(func(c *Config) *string { return &c.Storage.DatabaseAppURL })},
		{"DATABASE_WORKER_URL", text(func(c *Config) *string { return &c.Storage.DatabaseWorkerURL })},
		{"DATABASE_READ_URL", text(func(c *Config) *string { return &c.Storage.DatabaseReadURL })},
		{"PALIMPSEST_DATA_DIR", text(func(c *Config) *string { return &c.Storage.DataDir })},
		{"PALIMPSEST_BLOB_URL", text(func(c *Config) *string { return &c.Storage.BlobURL })},
		{"REDIS_URL", text(func(c *Config) *string { return &c.Storage.RedisURL })},
		{"PALIMPSEST_SECRET_KEY", text(func(c *Config) *string { return &c.Storage.SecretKey })},
		{"PALIMPSEST_PPROF", truth(func(c *Config) *bool { return &c.Serving.Profiles })},
		{"PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS", truth(func(c *Config) *bool { return &c.Serving.AllowPrivateUpstreams })},
		{"SMTP_URL", text(func(c *Config) *string { return &c.Accounts.SMTPURL })},
		{"PALIMPSEST_MAIL_FROM", text(func(c *Config) *string { return &c.Accounts.MailFrom })},
		{"PALIMPSEST_REQUIRE_VERIFIED_EMAIL", truth(func(c *Config) *bool { return &c.Accounts.RequireVerifiedEmail })},
		{"PALIMPSEST_TRUSTED_PROXIES", text(func(c *Config) *string { return &c.Serving.TrustedProxies })},
		{"PRXY_PIPE", text(func(c *Config) *string { return &c.Pipe })},
		{"PALIMPSEST_PIPE", text(func(c *Config) *string { return &c.Pipe })},
		{"PALIMPSEST_DRAIN_TIMEOUT", span(func(c *Config) *time.Duration { return &c.Serving.DrainTimeout })},
		{"PALIMPSEST_DRAIN_DELAY", span(func(c *Config) *time.Duration { return &c.Serving.DrainDelay })},
		{"PALIMPSEST_LOG_FORMAT", text(func(c *Config) *string { return &c.Serving.LogFormat })},
	}...)
}

// span returns a setter for a duration field.
func span(field func(*Config) *time.Duration) func(*Config, string) error {
	return func(config *Config, value string) error {
		duration, err := time.ParseDuration(value)
		if err != nil || duration < 0 {
			return errors.New("must be a duration such as 5m or 30s")
		}
		*field(config) = duration
		return nil
	}
}

// truth returns a setter for a boolean field.
func truth(field func(*Config) *bool) func(*Config, string) error {
	return func(config *Config, value string) error {
		is, err := strconv.ParseBool(value)
		if err != nil {
			return errors.New("must be true or false")
		}
		*field(config) = is
		return nil
	}
}

// LoadConfig returns the defaults, overridden by the YAML file if there is one, overridden by the
// environment. An error names the wrong setting.
func LoadConfig(file string, environment func(string) (string, bool)) (Config, error) {
	config := DefaultConfig()
	if file == "" {
		file, _ = environment("PALIMPSEST_CONFIG")
	}
	fromFile, err := readFile(file)
	if err != nil {
		return Config{}, err
	}
	for _, setting := range settings() {
		value, ok := environment(setting.name)
		if !ok || value == "" && setting.name != "PALIMPSEST_ADMIN_ADDR" {
			value, ok = fromFile[setting.name]
		}
		delete(fromFile, setting.name)
		if !ok {
			continue
		}
		if err := setting.set(&config, strings.TrimSpace(value)); err != nil {
			return Config{}, fmt.Errorf("%s: %w", setting.name, err)
		}
	}
	for name := range fromFile {
		return Config{}, fmt.Errorf("%s: %s: no such setting", file, name)
	}
	if err := config.Validate(); err != nil {
		return Config{}, err
	}
	return config, nil
}

// Validate names the first wrong setting and its allowed values. The message never contains a secret.
func (c Config) Validate() error {
	if err := checkAddress("PALIMPSEST_ADDR", c.Serving.Addr); err != nil {
		return err
	}
	if c.Serving.AdminAddr != "" {
		if err := checkAddress("PALIMPSEST_ADMIN_ADDR", c.Serving.AdminAddr); err != nil {
			return err
		}
	}
	for name, value := range map[string]string{"DATABASE_URL": c.Storage.DatabaseURL, "DATABASE_APP_URL": c.Storage.DatabaseAppURL, "DATABASE_WORKER_URL": c.Storage.DatabaseWorkerURL, "DATABASE_READ_URL": c.Storage.DatabaseReadURL} {
		if err := checkURL(name, value, "postgres", "postgresql"); err != nil {
			return err
		}
	}
	if err := c.checkDatabases(); err != nil {
		return err
	}
	if c.Storage.DatabaseReadURL != "" && c.Storage.DatabaseURL == "" {
		return errors.New("DATABASE_READ_URL: names a replica of DATABASE_URL, which is not set")
	}
	if err := checkURL("REDIS_URL", c.Storage.RedisURL, "redis", "rediss"); err != nil {
		return err
	}
	if err := checkURL("PALIMPSEST_BLOB_URL", c.Storage.BlobURL, "file", "s3"); err != nil {
		return err
	}
	if err := checkURL("PALIMPSEST_PUBLIC_URL", c.Serving.PublicURL, "http", "https"); err != nil {
		return err
	}
	if err := checkURL("PALIMPSEST_PUBLIC_DEMO", c.Demos.PublicDemo, "http", "https"); err != nil {
		return err
	}
	if c.Accounts.SMTPURL != "" {
		if _, err := mail.NewSMTP(c.Accounts.SMTPURL, c.Accounts.MailFrom, nil); err != nil {
			return fmt.Errorf("SMTP_URL: %w", err)
		}
	}
	if _, err := ReadNetworks(c.Serving.TrustedProxies); err != nil {
		return fmt.Errorf("PALIMPSEST_TRUSTED_PROXIES: %w", err)
	}
	if err := c.Catalog.validate(); err != nil {
		return err
	}
	if err := c.Accounts.SignUp.validate(); err != nil {
		return err
	}
	if c.Storage.DataDir == "" {
		return errors.New("PALIMPSEST_DATA_DIR: is empty; name a directory")
	}
	if c.Serving.LogFormat != "text" && c.Serving.LogFormat != "json" {
		return fmt.Errorf("PALIMPSEST_LOG_FORMAT: %q is neither text nor json", c.Serving.LogFormat)
	}
	if _, err := modules.Catalog().ParseModules(c.Pipe); err != nil {
		return fmt.Errorf("PALIMPSEST_PIPE: %w", err)
	}
	if err := checkURL("STRIPE_API_BASE", c.Billing.APIBase, "http", "https"); err != nil {
		return err
	}
	if err := c.Billing.Validate(); err != nil {
		return err
	}
	if err := c.Traces.Validate(); err != nil {
		return err
	}
	if _, err := DecodeSecrets(c.Storage.SecretKey); c.Storage.SecretKey != "" && err != nil {
		return fmt.Errorf("PALIMPSEST_SECRET_KEY: %w", err)
	}
	return nil
}

// Secrets returns the master keys, the sealing one first. Without the setting,
// one is generated into the data directory at the first start.
func (c Config) Secrets() ([][]byte, error) {
	if c.Storage.SecretKey != "" {
		return DecodeSecrets(c.Storage.SecretKey)
	}
	file := filepath.Join(c.Storage.DataDir, "secret.key")
	stored, err := os.ReadFile(file) //nolint:gosec // below the operator's own data directory
	if err == nil {
		secrets, err := DecodeSecrets(strings.TrimSpace(string(stored)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return secrets, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read secret key: %w", err)
	}
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret)                                      // never fails
	if err := os.MkdirAll(c.Storage.DataDir, 0o755); err != nil { //nolint:gosec // the database's own user passes through
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	encoded := base64.StdEncoding.EncodeToString(secret)
	if err := os.WriteFile(file, []byte(encoded+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write secret key: %w", err)
	}
	return [][]byte{secret}, nil
}

// OpenVault creates the vault, which seals provider keys and derives other keys with the master key.
func (c Config) OpenVault() (*vault.Vault, error) {
	secrets, err := c.Secrets()
	if err != nil {
		return nil, err
	}
	return vault.New(secrets)
}

// secretSize is the length of a master key, in bytes.
const secretSize = 32

// DecodeSecrets reads master keys in base64, separated by commas.
func DecodeSecrets(list string) ([][]byte, error) {
	var secrets [][]byte
	for encoded := range strings.SplitSeq(list, ",") {
		secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if err != nil || len(secret) != secretSize {
			return nil, fmt.Errorf("must be %d bytes in base64, or several separated by commas; make one with: openssl rand -base64 %d", secretSize, secretSize)
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

// ReadNetworks reads networks separated by commas. It returns nil for an empty list.
func ReadNetworks(list string) ([]*net.IPNet, error) {
	var networks []*net.IPNet
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8 or 203.0.113.7/32", text)
		}
		networks = append(networks, network)
	}
	return networks, nil
}

// readFile reads the settings of a YAML file, if there is one.
func readFile(file string) (map[string]string, error) {
	if file == "" {
		return map[string]string{}, nil
	}
	content, err := os.ReadFile(file) //nolint:gosec // the operator names it
	if err != nil {
		return nil, fmt.Errorf("PALIMPSEST_CONFIG: %w", err)
	}
	values := map[string]string{}
	if err := yaml.Unmarshal(content, &values); err != nil {
		return nil, fmt.Errorf("PALIMPSEST_CONFIG: %s: must map the settings' names to values: %w", file, err)
	}
	return values, nil
}

func checkAddress(name, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s: %q is not host:port, such as 127.0.0.1:8080", name, address)
	}
	if number, err := strconv.Atoi(port); err != nil || number < 0 || number > 65535 {
		return fmt.Errorf("%s: port %q is not between 0 and 65535", name, port)
	}
	return nil
}

func checkURL(name, value string, schemes ...string) error {
	if value == "" {
		return nil
	}
	parsed, err := url.Parse(value)
	if err != nil {
		return fmt.Errorf("%s: is not a URL", name) // the cause would show the password
	}
	if slices.Contains(schemes, parsed.Scheme) {
		return nil
	}
	return fmt.Errorf("%s: must start with %s://", name, strings.Join(schemes, ":// or "))
}
