package manage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
)

// configurationHandler exports and imports a workspace's settings as one file.
type configurationHandler struct {
	configurations *Configurations
}

func (h configurationHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/config/export", a.as(tenants.ReadConfig, withQuery(h.exportConfig, "format")))
	group.POST("/config/import", a.as(tenants.ManageSettings, withQuery(h.importConfig, "dry_run")))
}

// configFormat is the version of the format of configuration files.
const configFormat = 1

// Configurations exports a workspace's settings as one file, without any secret, and imports such a file into
// a workspace.
type Configurations struct {
	defaults     pipeline.Layer
	pipelines    tenants.Pipelines
	modelWindows tenants.ModelWindows
	data         tenants.Data
	team         tenants.Members
	apiKeys      tenants.APIKeys
	providerKeys tenants.ProviderKeys
	audit        tenants.AuditLog
}

// NewConfigurations returns Configurations on the stores of config. Defaults,
// Pipelines, ModelWindows, Data, Members, APIKeys, ProviderKeys and Audit must be set.
func NewConfigurations(config Config) *Configurations {
	return &Configurations{
		defaults: config.Defaults, pipelines: config.Gateway.Pipelines, modelWindows: config.Gateway.ModelWindows, data: config.Administration.Data,
		team: config.People.Members, apiKeys: config.Gateway.APIKeys, providerKeys: config.Gateway.ProviderKeys, audit: config.Administration.Audit,
	}
}

// configurationJSON is a configuration file.
type configurationJSON struct {
	Format       int                      `json:"palimpsest"`
	Settings     configSettingsJSON       `json:"settings"`
	Pipeline     pipeline.Config          `json:"pipeline"`
	ModelWindows map[string]int           `json:"model_windows"` // set ones, without learned ones
	ModelPrices  []configModelPriceJSON   `json:"model_prices"`
	ModelLimits  []configModelLimitJSON   `json:"model_limits"`
	Budgets      []configBudgetJSON       `json:"budgets"`
	APIKeys      []configAPIKeyJSON       `json:"api_keys"`
	ProviderKeys []configProviderKeysJSON `json:"provider_keys"`
}

type configSettingsJSON struct {
	settingsJSON

	RetentionDays int `json:"retention_days"` // 0 means forever
}

// configAPIKeyJSON is an API key without its secret.
type configAPIKeyJSON struct {
	ID        uuid.UUID       `json:"id"`
	Name      string          `json:"name"`
	Scopes    []tenants.Scope `json:"scopes"`
	Pipeline  string          `json:"pipeline,omitempty"`
	ExpiresAt *time.Time      `json:"expires_at"`

	limitsJSON
}

// configProviderKeysJSON is a provider key without its secret.
type configProviderKeysJSON struct {
	ID       uuid.UUID          `json:"id"`
	Name     string             `json:"name"`
	Provider tenants.Provider   `json:"provider"`
	Preset   string             `json:"preset,omitempty"`
	BaseURL  string             `json:"base_url,omitempty"`
	Region   string             `json:"region,omitempty"`
	Dialects []tenants.Provider `json:"dialects"`
	Auth     tenants.Auth       `json:"auth"`
	Headers  []tenants.Header   `json:"headers"`
	Models   []string           `json:"models"`
	Order    int                `json:"order"`
	Weight   int                `json:"weight"`
	Default  bool               `json:"default"`
	Enabled  bool               `json:"enabled"`
	Wait     int                `json:"wait_seconds"`
}

// configured holds a workspace's settings.
type configured struct {
	saved     tenants.PipelineConfig
	pipeline  pipeline.Config
	windows   []tenants.ModelWindow
	prices    []tenants.ModelPrice
	limits    []tenants.ModelLimit
	budgets   []tenants.Budget
	members   []tenants.Member
	settings  tenants.DataSettings
	retention tenants.Retention
	keys      []tenants.APIKey // without revoked ones
	providers []tenants.ProviderKey
}

func (s *Configurations) read(ctx context.Context, workspace tenants.WorkspaceID) (now configured, err error) {
	if now.saved, err = s.pipelines.Pipeline(ctx, workspace); err != nil {
		return now, err
	}
	if now.pipeline, _, err = modules.Catalog().Resolve(s.defaults, pipeline.WorkspaceLayer(now.saved.Modules, now.saved.YAML)); err != nil {
		return now, fmt.Errorf("saved pipeline, version %d: %w", now.saved.Version, err)
	}
	if now.windows, err = s.modelWindows.ModelWindows(ctx, workspace); err != nil {
		return now, err
	}
	if now.prices, err = s.data.ModelPrices(ctx, workspace); err != nil {
		return now, err
	}
	if now.limits, err = s.data.ModelLimits(ctx, workspace); err != nil {
		return now, err
	}
	if now.budgets, err = s.data.Budgets(ctx, workspace); err != nil {
		return now, err
	}
	if now.members, err = s.team.Members(ctx, workspace); err != nil {
		return now, err
	}
	if now.settings, err = s.data.DataSettings(ctx, workspace); err != nil {
		return now, err
	}
	if now.retention, err = s.data.Retention(ctx, workspace); err != nil {
		return now, err
	}
	if now.providers, err = s.providerKeys.ProviderKeys(ctx, workspace); err != nil {
		return now, err
	}
	keys, err := s.apiKeys.APIKeys(ctx, workspace)
	for _, key := range keys {
		if key.RevokedAt == nil {
			now.keys = append(now.keys, key)
		}
	}
	return now, err
}

// Export returns a workspace's configuration as YAML, or as JSON. The same
// configuration gives the same bytes.
func (s *Configurations) Export(ctx context.Context, workspace tenants.WorkspaceID, asJSON bool) ([]byte, error) {
	now, err := s.read(ctx, workspace)
	if err != nil {
		return nil, err
	}
	file := configurationJSON{
		Format: configFormat, Settings: configSettingsJSON{settingsOf(now.settings), now.retention.Days}, Pipeline: now.pipeline,
		ModelWindows: map[string]int{}, ModelPrices: now.modelPrices(), ModelLimits: now.modelLimits(), Budgets: now.budgetsInFile(), APIKeys: []configAPIKeyJSON{}, ProviderKeys: []configProviderKeysJSON{},
	}
	for _, window := range now.windows {
		if window.Source == tenants.WindowOverride {
			file.ModelWindows[window.Model] = window.Tokens
		}
	}
	for _, key := range now.keys {
		file.APIKeys = append(file.APIKeys, configAPIKeyJSON{
			ID: key.ID, Name: key.Name, Scopes: key.Scopes, Pipeline: key.Pipeline, ExpiresAt: key.ExpiresAt, limitsJSON: limitsOf(key.Limits),
		})
	}
	for _, key := range now.providers {
		of := providerKeyOf(key)
		file.ProviderKeys = append(file.ProviderKeys, configProviderKeysJSON{
			ID: of.ID, Name: of.Name, Provider: of.Provider, Preset: of.Preset, BaseURL: of.BaseURL, Region: of.Region, Dialects: of.Dialects, Auth: of.Auth,
			Headers: of.Headers, Models: of.Models, Order: of.Order, Weight: of.Weight, Default: of.Default, Enabled: of.Enabled, Wait: of.Wait,
		})
	}
	written, err := json.MarshalIndent(file, "", "  ")
	if err != nil || asJSON {
		return written, err
	}
	return inYAML(written)
}

// inYAML converts JSON to YAML with its members in the same order.
func inYAML(written []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(written, &root); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	plain(&root)
	var out strings.Builder
	out.WriteString("# Configuration of a Palimpsest workspace. It holds no secret.\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return []byte(out.String()), nil
}

// plain formats a node as people write YAML: short lists of values in one line.
func plain(node *yaml.Node) {
	node.Style = 0
	flat := node.Kind == yaml.SequenceNode
	for _, below := range node.Content {
		plain(below)
		flat = flat && below.Kind == yaml.ScalarNode
	}
	if flat {
		node.Style = yaml.FlowStyle
	}
}

func (h configurationHandler) exportConfig(c echo.Context, who caller) error {
	format := c.QueryParam("format")
	if format != "" && format != "yaml" && format != "json" {
		return tenants.Invalid{Field: "format", Message: "must be yaml or json"}
	}
	file, err := h.configurations.Export(c.Request().Context(), who.workspace, format == "json")
	if err != nil {
		return err
	}
	name, media := "palimpsest-config.yaml", "application/yaml; charset=utf-8"
	if format == "json" {
		name, media = "palimpsest-config.json", echo.MIMEApplicationJSON
	}
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`"`)
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.Blob(http.StatusOK, media, file)
}

type configImportJSON struct {
	DryRun  bool          `json:"dry_run"`
	Changes []settingJSON `json:"changes"`
	ByHand  []string      `json:"by_hand"`
}

func (h configurationHandler) importConfig(c echo.Context, who caller) error {
	dry := c.QueryParam("dry_run")
	if dry != "" && dry != "true" && dry != "false" {
		return tenants.Invalid{Field: "dry_run", Message: "must be true or false"}
	}
	switch mediaType(c.Request()) {
	case "application/yaml", "application/x-yaml", "text/yaml", echo.MIMEApplicationJSON:
	default:
		return errNotConfig
	}
	body, err := readBody(c)
	if err != nil {
		return err
	}
	came, err := h.configurations.Import(c.Request().Context(), who.workspace, body, who.author(), who.may, dry == "true")
	if err != nil {
		return err
	}
	answer := configImportJSON{DryRun: dry == "true", Changes: []settingJSON{}, ByHand: append([]string{}, came.ByHand...)}
	for _, change := range came.Changes {
		answer.Changes = append(answer.Changes, settingJSON{Field: change.Place, Before: change.Before, After: change.After})
	}
	return c.JSON(http.StatusOK, answer)
}

// configBudgetJSON is a budget in a file, which identifies a member by mail address or by id.
type configBudgetJSON struct {
	Kind tenants.SpenderKind `json:"kind"`
	ID   string              `json:"id,omitempty"`
	tenants.QuotaChange
}

// budgetsInFile returns the budgets beside those of keys in the form of a file.
func (c *configured) budgetsInFile() []configBudgetJSON {
	return each(c.budgets, func(budget tenants.Budget) configBudgetJSON { return budgetInFile(budget, c.members) })
}

func budgetInFile(budget tenants.Budget, members []tenants.Member) configBudgetJSON {
	written := configBudgetJSON{Kind: budget.Kind, ID: budget.ID, QuotaChange: budgetQuota(&budget)}
	for _, member := range members {
		if budget.Kind == tenants.MemberSpends && member.User.ID.String() == budget.ID {
			written.ID = member.User.Email
		}
	}
	return written
}

// takeBudgets sets the budgets in a file; others stay as they are.
func (i *configImport) takeBudgets(ctx context.Context, part configMember) error {
	wanted := slices.Clone(i.now.budgets)
	names := append([]string{"kind", "id"}, quotaNames(func(limit *tenants.Limit) bool { return limit.IsMoney || limit.OfEndUser })...)
	for _, item := range i.items(part) {
		var asked newBudget
		if !takeAll(&i.configReader, item, &asked, names...) {
			continue
		}
		email := asked.ID
		if _, err := uuid.Parse(asked.ID); asked.Kind == tenants.MemberSpends && err != nil {
			at := slices.IndexFunc(i.now.members, func(member tenants.Member) bool { return strings.EqualFold(member.User.Email, email) })
			if at < 0 {
				i.byHandf("%s is not a member here: invite them, then import again to set their budget.", email)
				continue
			}
			asked.ID = i.now.members[at].User.ID.String()
		}
		budget, err := asked.budget()
		if err == nil {
			err = budget.Validate()
		}
		if err != nil {
			if err := i.refused(item.place, err); err != nil {
				return err
			}
			continue
		}
		at := slices.IndexFunc(wanted, func(other tenants.Budget) bool { return other.Spender == budget.Spender })
		if at < 0 {
			wanted = append(wanted, budget)
			continue
		}
		wanted[at] = budget
	}
	if len(i.faults) > 0 || !i.changed(part.place, tenants.BudgetFields(i.now.budgets), tenants.BudgetFields(wanted)) {
		return nil
	}
	return i.refused(part.place, i.data.SetBudgets(ctx, i.tenant, wanted))
}
