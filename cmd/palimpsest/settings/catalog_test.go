package settings

import (
	"strings"
	"testing"
)

func TestCatalogNeedsTheKeyThatSignsIt(t *testing.T) {
	t.Parallel()
	const key = "6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw="
	place := map[string]string{"PALIMPSEST_CATALOG": "https://example.com/models.json"}
	if _, err := LoadConfig("", environment(place)); err == nil || !strings.Contains(err.Error(), "PALIMPSEST_CATALOG_KEY") {
		t.Errorf("without a key: %v", err)
	}
	place["PALIMPSEST_CATALOG_KEY"] = key
	if config, err := LoadConfig("", environment(place)); err != nil || len(config.Catalog.Key) != 32 {
		t.Errorf("with a key: %v, %v", config.Catalog, err)
	}
}
