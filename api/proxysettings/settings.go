// Package proxysettings serves workspaces' settings to the proxy from memory, and routes requests by them.
package proxysettings

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"palimpsest/pipeline"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
	"palimpsest/tenants/redaction"
)

const (
	// freshFor bounds how long settings are served from memory if a notification of their change is lost.
	freshFor = 30 * time.Second

	// outageFor bounds how long they are served while they cannot be read.
	outageFor = time.Hour

	loadTimeout = 5 * time.Second

	// againTimeout bounds how long a request waits for settings that were read before, and againAge how long
	// the old ones are served afterwards.
	againTimeout  = 500 * time.Millisecond
	againAge      = 5 * time.Second
	maxWorkspaces = 100_000
)

// Workspaces reads a workspace's settings.
type Workspaces interface {
	Pipeline(ctx context.Context, workspace tenants.WorkspaceID) (tenants.PipelineConfig, error)
	ProviderKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ProviderKey, error)
	ModelWindows(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ModelWindow, error)

	DataSettings(ctx context.Context, workspace tenants.WorkspaceID) (tenants.DataSettings, error)

	// LearnModelWindow stores the window that a provider revealed for a model, unless someone has set one.
	LearnModelWindow(ctx context.Context, workspace tenants.WorkspaceID, model string, tokens int) error
}

// Cache serves the settings of workspaces from memory.
type Cache struct {
	workspaces Workspaces
	restrained func(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Restraint, error)    // optional: no restraints if nil
	budgets    func(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Budget, error)     // nil if keys alone have budgets
	ownPrices  func(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ModelPrice, error) // nil if list prices hold for all
	ownLimits  func(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ModelLimit, error) // nil if the catalog's hold for all
	vault      tenants.ProviderKeyVault
	tagKey     func(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error) // nil disables redaction
	defaults   pipeline.Layer
	private    bool                                   // requests may name base URLs on private addresses
	known      *localcache.Cache[[16]byte, *settings] // by workspace
	last       *localcache.Cache[[16]byte, *settings] // fallback while the store fails
	changes    localcache.Changes
	loading    singleflight.Group // by workspace and number of changes
}

// settings holds the settings of one workspace, ready for use.
type settings struct {
	layer    pipeline.Layer
	config   pipeline.Config // for requests and keys without settings
	sources  pipeline.Sources
	keys     []tenants.ProviderKey                 // in their configured order
	secrets  []string                              // of the keys, in the clear: only kept in memory
	windows  map[string]int                        // context windows by model; never changed
	prices   map[uuid.UUID]map[string]tokens.Price // by provider key and model; those of uuid.Nil at every key; never changed
	limits   []tenants.ModelLimit
	noStore  bool            // its exchanges are not stored
	names    bool            // show end users by the application's own ids
	origins  tenants.Origins // of pages that may read answers in a browser
	failover tenants.Failover
	own      bool                // requests may bring credentials of their own
	changed  bool                // a change was announced since they were read
	redactor *redaction.Redactor // nil if messages are stored as they came
	budgets  map[tenants.Spender]tenants.Quota

	restraint tenants.Restraint
}

// New returns a Cache; modules is the default pipeline of a workspace without its own, and allowPrivate lets
// requests name base URLs on private addresses.
func New(workspaces Workspaces, vault tenants.ProviderKeyVault, modules string, allowPrivate bool) (*Cache, error) {
	known, err := newCache(freshFor)
	if err != nil {
		return nil, err
	}
	last, err := newCache(outageFor)
	if err != nil {
		return nil, err
	}
	defaults := pipeline.Layer{Source: pipeline.FromDefault, Modules: modules}
	return &Cache{workspaces: workspaces, vault: vault, defaults: defaults, private: allowPrivate, known: known, last: last}, nil
}

// WithPlans applies the restraints returned by restrained to workspaces' traffic, and returns c.
func (c *Cache) WithPlans(restrained func(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Restraint, error)) *Cache {
	c.restrained = restrained
	return c
}

// WithRedaction enables workspaces' redaction of personal data, with tags made with the key that tagKey
// returns, and returns c. Without it, a workspace with redaction has no settings.
func (c *Cache) WithRedaction(tagKey func(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error)) *Cache {
	c.tagKey = tagKey
	return c
}

// WithBudgets reads the budgets of workspaces with read, and returns c.
func (c *Cache) WithBudgets(read func(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Budget, error)) *Cache {
	c.budgets = read
	return c
}

// WithPrices reads workspaces' prices of models with read, and returns c.
func (c *Cache) WithPrices(read func(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ModelPrice, error)) *Cache {
	c.ownPrices = read
	return c
}

// WithLimits reads workspaces' limits of models with read, and returns c.
func (c *Cache) WithLimits(read func(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ModelLimit, error)) *Cache {
	c.ownLimits = read
	return c
}

func newCache(age time.Duration) (*localcache.Cache[[16]byte, *settings], error) {
	cache, err := localcache.New[[16]byte](localcache.Options[*settings]{MaximumSize: maxWorkspaces, ExpireAfterWrite: age})
	if err != nil {
		return nil, fmt.Errorf("known settings: %w", err)
	}
	return cache, nil
}

// Forget drops a workspace's settings because they have changed.
func (c *Cache) Forget(workspace tenants.WorkspaceID) {
	c.changes.Heard(func(uint64) {
		c.known.Delete(workspace)
		if before, ok := c.last.Get(workspace); ok {
			c.last.Set(workspace, before.marked(true))
		}
	})
}

// ForgetAll drops all settings because changes may have been missed.
func (c *Cache) ForgetAll() {
	c.changes.Heard(func(uint64) { c.known.Clear() })
}

// Config returns the effective pipeline for a key and a request's settings, and the source of each value.
// Settings beyond the current rights of the people behind the key are reduced to those rights.
func (c *Cache) Config(ctx context.Context, key tenants.APIKey, asked pipeline.Layer) (pipeline.Config, pipeline.Sources, error) {
	workspace, err := c.of(ctx, key.Workspace)
	if err != nil {
		return pipeline.Config{}, pipeline.Sources{}, err
	}
	if key.Pipeline == "" && asked.Modules == "" && asked.YAML == "" {
		return workspace.config, workspace.sources, nil
	}
	own := pipeline.Layer{Source: pipeline.FromAPIKey, YAML: key.Pipeline}
	return RightsOf(key.Rights).Resolve(modules.Catalog(), workspace.config, c.defaults, workspace.layer, own, asked)
}

// ReadAhead loads a workspace's settings into memory, so that they are known if the database is away at the
// workspace's next request.
func (c *Cache) ReadAhead(ctx context.Context, workspace tenants.WorkspaceID) error {
	_, err := c.of(ctx, workspace)
	return err
}

// Overrides returns a workspace's replacements of catalog data for models, for requests with a provider key.
// The caller must not change the result.
func (c *Cache) Overrides(ctx context.Context, workspace tenants.WorkspaceID, key uuid.UUID) (tokens.Overrides, error) {
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return tokens.Overrides{}, err
	}
	prices := settings.prices[uuid.Nil]
	if own := settings.prices[key]; key != uuid.Nil && len(own) > 0 {
		prices = maps.Clone(prices)
		if prices == nil {
			prices = map[string]tokens.Price{}
		}
		maps.Copy(prices, own)
	}
	windows, outputs := settings.limitsAt(key)
	return tokens.Overrides{Windows: windows, Outputs: outputs, Prices: prices}, nil
}

// limitsAt returns the context windows and the longest answers of models at a provider key. The caller must
// not change them.
func (s *settings) limitsAt(key uuid.UUID) (windows, outputs map[string]int) {
	if len(s.limits) == 0 {
		return s.windows, nil
	}
	windows, outputs = maps.Clone(s.windows), map[string]int{}
	for _, limit := range s.limits { // those of every key come first for a model
		if limit.ProviderKey != uuid.Nil && limit.ProviderKey != key {
			continue
		}
		if limit.Window > 0 {
			windows[limit.Model] = limit.Window
		}
		if limit.Output > 0 {
			outputs[limit.Model] = limit.Output
		}
	}
	return windows, outputs
}

func pricesOf(set []tenants.ModelPrice) map[uuid.UUID]map[string]tokens.Price {
	prices := map[uuid.UUID]map[string]tokens.Price{}
	for _, price := range set {
		if prices[price.ProviderKey] == nil {
			prices[price.ProviderKey] = map[string]tokens.Price{}
		}
		prices[price.ProviderKey][price.Model] = tokens.Price{
			Input: price.Input, Output: price.Output, CacheRead: price.CacheRead, CacheWrite: price.CacheWrite5m, CacheWrite1h: price.CacheWrite1h,
		}
	}
	return prices
}

// Keeps reports whether a workspace stores more of its exchanges than figures.
func (c *Cache) Keeps(ctx context.Context, workspace tenants.WorkspaceID) (bool, error) {
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return false, err
	}
	return !settings.noStore, nil
}

// ShowsEndUsers reports whether a workspace shows end users by their applications' own ids.
func (c *Cache) ShowsEndUsers(ctx context.Context, workspace tenants.WorkspaceID) (bool, error) {
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return false, err
	}
	return settings.names, nil
}

// Origins returns the origins of pages that may read a workspace's answers in a browser.
func (c *Cache) Origins(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Origins, error) {
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return settings.origins, nil
}

// Redactor returns the redactor for stored exchanges of a workspace; nil if redaction is off.
func (c *Cache) Redactor(ctx context.Context, workspace tenants.WorkspaceID) (*redaction.Redactor, error) {
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return settings.redactor, nil
}

// Redact is Redactor for prompts.
func (c *Cache) Redact(ctx context.Context, workspace tenants.WorkspaceID) (pipeline.Redact, error) {
	redactor, err := c.Redactor(ctx, workspace)
	if err != nil || redactor == nil {
		return nil, err
	}
	return redactor.JSON, nil
}

// Budgets returns the budgets of a workspace beside those of its keys. The caller must not change the map.
func (c *Cache) Budgets(ctx context.Context, workspace tenants.WorkspaceID) (map[tenants.Spender]tenants.Quota, error) {
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return settings.budgets, nil
}

// Restraint returns the restraint of a workspace's traffic.
func (c *Cache) Restraint(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Restraint, error) {
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return tenants.Restraint{}, err
	}
	return settings.restraint, nil
}

// Learn stores the context window that a provider revealed for an unknown model. It applies at once, even if
// it can't be stored.
func (c *Cache) Learn(ctx context.Context, workspace tenants.WorkspaceID, model string, tokens int) error {
	changes := c.changes.Count()
	if known, ok := c.known.Get(workspace); ok && known.windows[model] == 0 {
		learned := *known
		learned.windows = maps.Clone(known.windows)
		learned.windows[model] = tokens
		c.changes.Keep(changes, func() { c.known.Set(workspace, &learned) })
	}
	if err := c.workspaces.LearnModelWindow(ctx, workspace, model, tokens); err != nil {
		return fmt.Errorf("learn window: %w", err)
	}
	return nil
}

// of returns a workspace's settings. While they can't be read, the previous ones stay valid, so that requests
// don't fail. A request waits only a while for settings that were read before, but reading them goes on.
func (c *Cache) of(ctx context.Context, workspace tenants.WorkspaceID) (*settings, error) {
	if settings, known := c.known.Get(workspace); known {
		return settings, nil
	}
	changes := c.changes.Count()
	before, known := c.last.Get(workspace)
	waiting, cancel := context.WithTimeout(ctx, before.patience())
	defer cancel()
	var result singleflight.Result
	select {
	case result = <-c.loading.DoChan(workspace.String()+strconv.FormatUint(changes, 10), func() (any, error) {
		return c.read(context.WithoutCancel(ctx), workspace, changes)
	}):
	case <-waiting.Done():
		result.Err = waiting.Err()
	}
	if loaded, ok := result.Val.(*settings); ok && result.Err == nil {
		return loaded, nil
	}
	if !known || ctx.Err() != nil {
		return nil, fmt.Errorf("settings of workspace: %w", result.Err)
	}
	return c.serveAgain(workspace, before, changes), nil
}

// serveAgain serves settings from before a count of changes for a while. Later requests do not wait as long for
// changed ones.
func (c *Cache) serveAgain(workspace tenants.WorkspaceID, before *settings, changes uint64) *settings {
	c.changes.Keep(changes, func() {
		if _, isRead := c.known.Get(workspace); !isRead {
			if before.changed {
				before = before.marked(false)
				c.last.Set(workspace, before)
			}
			c.known.Set(workspace, before)
			c.known.SetExpiresAfter(workspace, againAge)
		}
	})
	return before
}

// marked returns the settings as changed since they were read, or not.
func (s *settings) marked(changed bool) *settings {
	marked := *s
	marked.changed = changed
	return &marked
}

// patience returns how long a request waits for newer settings than s, which may be nil. Settings without a
// provider key serve few requests, and those before an announced change may say the opposite of the new ones.
func (s *settings) patience() time.Duration {
	if s != nil && len(s.keys) > 0 && !s.changed {
		return againTimeout
	}
	return loadTimeout
}

// read loads a workspace's settings and keeps them, unless there was a change since.
func (c *Cache) read(ctx context.Context, workspace tenants.WorkspaceID, changes uint64) (loaded *settings, err error) {
	defer func() { // in a goroutine of its own, where a panic would end the process
		if value := recover(); value != nil {
			loaded, err = nil, fmt.Errorf("read settings: %v", value)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	if loaded, err = c.load(ctx, workspace); err != nil {
		return nil, err
	}
	c.changes.Keep(changes, func() {
		c.last.Set(workspace, loaded)
		c.known.Set(workspace, loaded)
	})
	return loaded, nil
}

func (c *Cache) load(ctx context.Context, workspace tenants.WorkspaceID) (*settings, error) {
	config, err := c.workspaces.Pipeline(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	keys, err := c.workspaces.ProviderKeys(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("provider keys: %w", err)
	}
	windows, err := c.workspaces.ModelWindows(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("model windows: %w", err)
	}
	data, err := c.workspaces.DataSettings(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("data settings: %w", err)
	}
	loaded := &settings{windows: make(map[string]int, len(windows)), noStore: data.NoStore, names: data.EndUsers == tenants.EndUsersPlain, origins: data.Origins, failover: data.Failover, own: data.OwnCredentials}
	if loaded.redactor, err = c.redactor(ctx, workspace, data.Redact); err != nil {
		return nil, fmt.Errorf("redaction: %w", err)
	}
	if loaded.budgets, err = c.loadBudgets(ctx, workspace); err != nil {
		return nil, err
	}
	if c.ownPrices != nil {
		prices, err := c.ownPrices(ctx, workspace)
		if err != nil {
			return nil, fmt.Errorf("model prices: %w", err)
		}
		loaded.prices = pricesOf(prices)
	}
	if c.ownLimits != nil {
		if loaded.limits, err = c.ownLimits(ctx, workspace); err != nil {
			return nil, fmt.Errorf("model limits: %w", err)
		}
	}
	for _, window := range windows {
		loaded.windows[window.Model] = window.Tokens
	}
	loaded.layer, err = modules.Catalog().Read(pipeline.WorkspaceLayer(config.Modules, config.YAML))
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	loaded.config, loaded.sources, err = modules.Catalog().Resolve(c.defaults, loaded.layer)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	if c.restrained != nil {
		if loaded.restraint, err = c.restrained(ctx, workspace); err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
	}
	loaded.keys, loaded.secrets = keys, make([]string, len(keys))
	for i, key := range keys {
		if loaded.secrets[i], err = c.vault.Open(key); err != nil {
			return nil, fmt.Errorf("provider key %s: %w", key.ID, err)
		}
	}
	return loaded, nil
}

func (c *Cache) redactor(ctx context.Context, workspace tenants.WorkspaceID, settings tenants.Redaction) (*redaction.Redactor, error) {
	if len(settings.Kinds) == 0 {
		return nil, nil //nolint:nilnil // it redacts nothing
	}
	if c.tagKey == nil {
		return nil, errNoTagKey
	}
	key, err := c.tagKey(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return redaction.New(settings, key), nil
}

// errNoTagKey is the error for a workspace with redaction in a process that can't redact.
var errNoTagKey = errors.New("no key for the tags of what is redacted")

func (c *Cache) loadBudgets(ctx context.Context, workspace tenants.WorkspaceID) (map[tenants.Spender]tenants.Quota, error) {
	if c.budgets == nil {
		return nil, nil //nolint:nilnil // a map of none
	}
	budgets, err := c.budgets(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("budgets: %w", err)
	}
	loaded := make(map[tenants.Spender]tenants.Quota, len(budgets))
	for _, budget := range budgets {
		loaded[budget.Spender] = budget.Quota
	}
	return loaded, nil
}

// RightsOf returns the limits for the settings of an API key, given the rights of its people. Text that they
// may not read does not enter its prompts.
func RightsOf(rights tenants.KeyRights) pipeline.Rights {
	bound := pipeline.Rights{Scope: pipeline.ScopeSession}
	switch rights.Reads {
	case tenants.ReadsAll:
		bound.Scope = pipeline.ScopeWorkspace
	case tenants.ReadsOwn:
		bound.Scope = pipeline.ScopePerson
	case tenants.ReadsNone:
	}
	return bound
}
