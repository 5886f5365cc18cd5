package pipeline

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// setting is one value of a config: how it is read and what it may be.
type setting struct {
	path  string
	read  func(*Config, *yaml.Node) error
	write func(*Config) (*yaml.Node, error)
	check func(*Config) string // the value and what is allowed; empty: fine

	bounds Bounds
}

// Bounds are the lowest and the highest number that a setting may be, as they are written;
// empty where it is no number.
type Bounds struct{ Lowest, Highest string }

// AllBounds returns the bounds of all numbers of a config, by the paths of their settings.
// A member of a setting has a path of its own: "ipc.llmCompression.maxTokens".
func AllBounds() map[string]Bounds {
	all := map[string]Bounds{}
	for _, setting := range settings() {
		if setting.bounds != (Bounds{}) {
			all[setting.path] = setting.bounds
		}
	}
	for _, count := range llmCounts() {
		all[llmPath+"."+count.name] = boundsOf(0, count.highest)
	}
	return all
}

func boundsOf(lowest, highest int) Bounds {
	return Bounds{Lowest: strconv.Itoa(lowest), Highest: strconv.Itoa(highest)}
}

// field returns the setting of the field that at points to.
func field[T any](path string, at func(*Config) *T, check func(T) string) setting {
	return setting{
		path: path,
		read: func(config *Config, node *yaml.Node) error {
			var value T
			if err := node.Decode(&value); err != nil {
				return err
			}
			switch any(value).(type) {
			case int, Window, []int: // the decoder would cut fractions off
				if number, has := fraction(node); has {
					return fmt.Errorf("%q must be a whole number", number)
				}
			}
			*at(config) = value
			return nil
		},
		write: func(config *Config) (*yaml.Node, error) {
			var node yaml.Node
			if err := node.Encode(*at(config)); err != nil {
				return nil, fmt.Errorf("write %s: %w", path, err)
			}
			if node.Kind != yaml.ScalarNode {
				node.Style = yaml.FlowStyle
			}
			return &node, nil
		},
		check: func(config *Config) string { return check(*at(config)) },
	}
}

// share returns the setting of a share.
func share(path string, at func(*Config) *float64, lowest, highest float64) setting {
	s := field(path, at, func(value float64) string {
		if value >= lowest && value <= highest { // false for NaN
			return ""
		}
		return fmt.Sprintf("%v is out of range; allowed is %.2f to %.2f", value, lowest, highest)
	})
	written := func(end float64) string { return strings.TrimSuffix(strconv.FormatFloat(end, 'f', 2, 64), ".00") }
	s.bounds = Bounds{Lowest: written(lowest), Highest: written(highest)}
	return s
}

// count returns the setting of a whole number.
func count(path string, at func(*Config) *int, lowest, highest int) setting {
	s := field(path, at, func(value int) string {
		if value >= lowest && value <= highest {
			return ""
		}
		return fmt.Sprintf("%d is out of range; allowed is %d to %d", value, lowest, highest)
	})
	s.bounds = boundsOf(lowest, highest)
	return s
}

// size returns the setting of a number of bytes, 0 for no limit.
func size(path string, at func(*Config) *int, lowest, highest int) setting {
	s := field(path, at, func(value int) string {
		if value == 0 || value >= lowest && value <= highest {
			return ""
		}
		return fmt.Sprintf("%d is out of range; allowed is 0 for no limit, or %d to %d", value, lowest, highest)
	})
	s.bounds = boundsOf(0, highest)
	return s
}

// fraction returns the first number in a node that is not whole.
func fraction(node *yaml.Node) (number string, has bool) {
	for _, element := range node.Content {
		if number, has := fraction(element); has {
			return number, true
		}
	}
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!float" {
		return "", false
	}
	value, err := strconv.ParseFloat(node.Value, 64)
	return node.Value, err != nil || value != math.Trunc(value)
}

// settings are all values of a config in the order in which they are written.
func settings() []setting {
	return slices.Concat(
		[]setting{field("modules", func(c *Config) *moduleList { return (*moduleList)(&c.Modules) }, func(names moduleList) string { return checkModules(names) })},
		ipcSettings(), bridgeSettings(), rehydratorSettings(), patternsSettings(), cacheSettings(),
	)
}

func ipcSettings() []setting {
	return []setting{
		share("ipc.targetUtilization", func(c *Config) *float64 { return &c.IPC.TargetUtilization }, 0.30, 0.95),
		share("ipc.compressTo", func(c *Config) *float64 { return &c.IPC.CompressTo }, 0.10, 0.90),
		share("ipc.minClear", func(c *Config) *float64 { return &c.IPC.MinClear }, 0.01, 0.50),
		count("ipc.preserveLastTurns", func(c *Config) *int { return &c.IPC.PreserveLastTurns }, 1, 100),
		count("ipc.preserveTokens", func(c *Config) *int { return &c.IPC.PreserveTokens }, 0, 1_000_000),
		field("ipc.preserveSystem", func(c *Config) *bool { return &c.IPC.PreserveSystem }, fine[bool]),
		field("ipc.archiveToBlob", func(c *Config) *bool { return &c.IPC.ArchiveToBlob }, fine[bool]),
		count("ipc.deepestLevel", func(c *Config) *int { return &c.IPC.DeepestLevel }, 0, 3),
		count("ipc.blockTokens", func(c *Config) *int { return &c.IPC.BlockTokens }, 500, 100_000),
		field("ipc.observationMasking", func(c *Config) *bool { return &c.IPC.ObservationMasking }, fine[bool]),
		field(llmPath, func(c *Config) *LLMCompression { return &c.IPC.LLMCompression }, checkLLM),
		share("ipc.idleUtilization", func(c *Config) *float64 { return &c.IPC.IdleUtilization }, 0.10, 0.95),
		field("ipc.contextWindow", func(c *Config) *Window { return &c.IPC.ContextWindow }, checkWindow),
		field("ipc.keepLastLadder", func(c *Config) *[]int { return &c.IPC.KeepLastLadder }, checkLadder),
		size("ipc.maxBytes", func(c *Config) *int { return &c.IPC.MaxBytes }, 100_000, 1_000_000_000),
		count("ipc.warnAfterEpochs", func(c *Config) *int { return &c.IPC.WarnAfterEpochs }, 0, 1000),
		field("ipc.trigger", func(c *Config) *string { return &c.IPC.Trigger }, choice(TriggerWindow, TriggerBreakEven)),
		count("ipc.minContext", func(c *Config) *int { return &c.IPC.MinContext }, 10_000, 10_000_000),
		field("ipc.repeats", func(c *Config) *string { return &c.IPC.Repeats }, choice(RepeatsKeep, RepeatsPoint)),
	}
}

func bridgeSettings() []setting {
	const at = "compaction-bridge."
	return []setting{
		count(at+"preserveLastTurns", func(c *Config) *int { return &c.Bridge.PreserveLastTurns }, 0, 100),
		field(at+"preserveActiveFiles", func(c *Config) *bool { return &c.Bridge.PreserveActiveFiles }, fine[bool]),
		field(at+"preserveDirectives", func(c *Config) *bool { return &c.Bridge.PreserveDirectives }, fine[bool]),
		share(at+"detectionThreshold", func(c *Config) *float64 { return &c.Bridge.DetectionThreshold }, 0, 1),
		field(at+"blobPrefix", func(c *Config) *string { return &c.Bridge.BlobPrefix }, checkPrefix),
		count(at+"maxTokens", func(c *Config) *int { return &c.Bridge.MaxTokens }, 0, 100_000),
		field(at+"placement", func(c *Config) *string { return &c.Bridge.Placement }, choice("turn", "system")),
		field(at+"clientCompaction", func(c *Config) *string { return &c.Bridge.ClientCompaction }, choice(ClientCompactionPass, ClientCompactionAnswer)),
	}
}

func rehydratorSettings() []setting {
	const at = "rehydrator."
	return []setting{
		field(at+"triggerPhrases", func(c *Config) *[]string { return &c.Rehydrator.TriggerPhrases }, checkPhrases),
		count(at+"maxRehydrated", func(c *Config) *int { return &c.Rehydrator.MaxRehydrated }, 0, 100),
		count(at+"searchDepthDays", func(c *Config) *int { return &c.Rehydrator.SearchDepthDays }, 1, 3650),
		share(at+"similarityThreshold", func(c *Config) *float64 { return &c.Rehydrator.SimilarityThreshold }, 0, 1),
		count(at+"maxTokens", func(c *Config) *int { return &c.Rehydrator.MaxTokens }, 0, 100_000),
		field(at+"scope", func(c *Config) *string { return &c.Rehydrator.Scope }, choice("session", "key", "workspace")),
		field(at+"placement", func(c *Config) *string { return &c.Rehydrator.Placement }, choice("turn", "system")),
		field(at+"embeddingModel", func(c *Config) *string { return &c.Rehydrator.EmbeddingModel }, fine[string]),
	}
}

func patternsSettings() []setting {
	const at = "patterns."
	return []setting{
		count(at+"maxInjected", func(c *Config) *int { return &c.Patterns.MaxInjected }, 0, 100),
		share(at+"minSuccessRate", func(c *Config) *float64 { return &c.Patterns.MinSuccessRate }, 0, 1),
		field(at+"review", func(c *Config) *string { return &c.Patterns.Review }, choice("required", "auto")),
		field(at+"placement", func(c *Config) *string { return &c.Patterns.Placement }, choice("turn", "system")),
	}
}

func cacheSettings() []setting {
	const at = "semantic-cache."
	return []setting{
		share(at+"similarity", func(c *Config) *float64 { return &c.SemanticCache.Similarity }, 0, 1),
		count(at+"ttlSeconds", func(c *Config) *int { return &c.SemanticCache.TTLSeconds }, 1, 31_536_000),
		field(at+"embeddingModel", func(c *Config) *string { return &c.SemanticCache.EmbeddingModel }, fine[string]),
		field(at+"scope", func(c *Config) *string { return &c.SemanticCache.Scope }, choice("session", "key", "workspace")),
	}
}

// moduleList is a list of modules, written as a list or separated by commas.
type moduleList []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (m *moduleList) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return node.Decode((*[]string)(m))
	}
	names, err := ParseModules(node.Value)
	if invalid, is := errors.AsType[Invalid](err); is {
		return errors.New(invalid.Message)
	}
	*m = names
	return nil
}

func checkModules(names []string) string {
	for i, name := range names {
		if !slices.Contains(Modules(), name) {
			return fmt.Sprintf("%q is no module; known are %s, and none for no module", name, strings.Join(Modules(), ", "))
		}
		if slices.Contains(names[:i], name) {
			return name + " is named twice; a module runs once"
		}
	}
	return ""
}

func fine[T any](T) string { return "" }

func choice(options ...string) func(string) string {
	return func(value string) string {
		if slices.Contains(options, value) {
			return ""
		}
		return fmt.Sprintf("%q is not allowed; choose one of %s", value, strings.Join(options, ", "))
	}
}

func checkWindow(window Window) string {
	const lowest, highest = 1_000, 100_000_000
	if window == 0 || window >= lowest && window <= highest {
		return ""
	}
	return fmt.Sprintf("%d is out of range; allowed is auto or %d to %d", window, lowest, highest)
}

func checkLadder(ladder []int) string {
	const allowed = "allowed are 1 to 20 falling numbers from 100 to 1"
	if len(ladder) == 0 || len(ladder) > 20 {
		return fmt.Sprintf("%d numbers are out of range; %s", len(ladder), allowed)
	}
	for i, turns := range ladder {
		if turns < 1 || turns > 100 || i > 0 && turns >= ladder[i-1] {
			return fmt.Sprintf("%d at place %d is out of order or range; %s", turns, i+1, allowed)
		}
	}
	return ""
}

// maxPrompt bounds a workspace's own prompt for summaries, in bytes.
const maxPrompt = 20_000

const llmPath = "ipc.llmCompression"

// llmCount is a whole number from 0 on among the members of llmCompression.
type llmCount struct {
	name    string
	at      func(*LLMCompression) int
	highest int
}

func llmCounts() []llmCount {
	return []llmCount{
		{"maxTokens", func(l *LLMCompression) int { return l.MaxTokens }, 100_000},
		{"reserveTokens", func(l *LLMCompression) int { return l.ReserveTokens }, 1_000_000},
		{"keepRecentTokens", func(l *LLMCompression) int { return l.KeepRecentTokens }, 1_000_000},
	}
}

func checkLLM(llm LLMCompression) string {
	if llm == (LLMCompression{}) {
		return ""
	}
	if llm.Model == "" {
		return "names no model; write {model: …} or false"
	}
	for _, count := range llmCounts() {
		if value := count.at(&llm); value < 0 || value > count.highest {
			return fmt.Sprintf("%s %d is out of range; allowed is 0 to %d", count.name, value, count.highest)
		}
	}
	if llm.Timeout < 0 || llm.Timeout > 10*time.Minute {
		return "timeout " + llm.Timeout.String() + " is out of range; allowed is 0s to 10m"
	}
	if len(llm.Prompt) > maxPrompt {
		return fmt.Sprintf("prompt of %d bytes is too long; allowed are %d", len(llm.Prompt), maxPrompt)
	}
	return ""
}

func checkPrefix(prefix string) string {
	if len(prefix) > 200 || strings.Contains(prefix, "..") || strings.HasPrefix(prefix, "/") || strings.ContainsAny(prefix, "\\\x00") {
		return fmt.Sprintf("%q is no prefix; allowed are up to 200 bytes without a leading slash, .. or backslash", prefix)
	}
	return ""
}

func checkPhrases(phrases []string) string {
	if len(phrases) > 100 {
		return fmt.Sprintf("%d phrases are out of range; allowed are 0 to 100", len(phrases))
	}
	for i, phrase := range phrases {
		if strings.TrimSpace(phrase) == "" || len(phrase) > 200 {
			return fmt.Sprintf("phrase %d is empty or longer than 200 bytes", i+1)
		}
	}
	return ""
}
