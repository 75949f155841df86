package payments

// Normalized returns the intent with the currency in lower case and the defaults of kind and, for charges, capture_method filled in, so that two ways
// of saying the same are the same. The default of off_session is not filled in here: a false cannot be told from an absent member any more, so
// whoever reads the wire does it. Everything else stays as it was sent; the metadata map is shared, not copied.
func (i Intent) Normalized() Intent {
	i.Currency = lowerASCII(i.Currency)
	if i.Kind == "" {
		i.Kind = KindCharge
	}
	if i.CaptureMethod == "" && !i.Kind.FollowUp() {
		i.CaptureMethod = CaptureAutomatic
	}
	i.All = i.All && (i.Kind == KindCapture || i.Kind == KindRefund)
	if len(i.Metadata) == 0 {
		i.Metadata = nil
	}
	i.ExpiresAt = i.ExpiresAt.UTC()
	return i
}
