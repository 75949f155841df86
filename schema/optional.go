package schema

// Optional is a member that may be absent, which is not the same as present and
// empty, false or 0. The zero value is absent.
type Optional[T any] struct {
	// Value is the zero value where the member is absent.
	Value T
	// Set says that the member is present.
	Set bool
}

// Some is a member that is present.
func Some[T any](value T) Optional[T] { return Optional[T]{Value: value, Set: true} }

// Or returns the value, or fallback where the member is absent.
func (o Optional[T]) Or(fallback T) T {
	if o.Set {
		return o.Value
	}
	return fallback
}
