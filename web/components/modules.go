package components

import "palimpsest/pipeline/modules"

// ModuleName returns a module's name for people.
func ModuleName(name string) string {
	if module, known := modules.Catalog().Module(name); known {
		return module.Title
	}
	return name
}
