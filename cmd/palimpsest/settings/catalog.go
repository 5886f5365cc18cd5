package settings

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"palimpsest/pipeline/tokens/catalog"
)

// Catalog is a catalog of models in place of the built-in one.
type Catalog struct {
	Place string            // PALIMPSEST_CATALOG; empty: the built-in one
	Key   ed25519.PublicKey // PALIMPSEST_CATALOG_KEY
}

func catalogSettings() []setting {
	return []setting{
		{"PALIMPSEST_CATALOG", func(c *Config, value string) error {
			if value != "" && !catalog.IsPlace(value) {
				return errors.New("must be an absolute path, or an address that begins with https:// or http://")
			}
			c.Catalog.Place = value
			return nil
		}},
		{"PALIMPSEST_CATALOG_KEY", func(c *Config, value string) (err error) {
			if value == "" {
				c.Catalog.Key = nil
				return nil
			}
			if c.Catalog.Key, err = catalog.ParseKey(value); err != nil {
				return fmt.Errorf("is %w; it must be an Ed25519 public key in base64", err)
			}
			return nil
		}},
	}
}

// validate returns an error for a catalog without a key to verify it.
func (c Catalog) validate() error {
	if c.Place != "" && c.Key == nil {
		return errors.New("PALIMPSEST_CATALOG needs PALIMPSEST_CATALOG_KEY, the public key that signs it")
	}
	return nil
}
