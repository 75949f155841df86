package stripesim

import (
	"slices"
	"strings"
)

var createSpec = spec{
	"amount": {}, "currency": {}, "confirm": {}, "off_session": {}, "capture_method": {}, "return_url": {},
	"description": {}, "customer": {}, "receipt_email": {}, "statement_descriptor_suffix": {}, "payment_method": {},
	"error_on_requires_action":  {},
	"metadata":                  {kind: dict, loose: true},
	"payment_method_types":      {kind: list},
	"automatic_payment_methods": {kind: object, subs: []string{"enabled", "allow_redirects"}},
}

// create is POST /v1/payment_intents.
type create struct {
	intent  intent // all but what the ledger assigns
	confirm *confirmation
}

func (c *create) target() string { return "" }

// parseCreate validates everything that can be told without state.
func parseCreate(_ string, pairs []pair) (operation, *apiError) {
	v, e := createSpec.read(pairs)
	if e != nil {
		return nil, e
	}
	c := &create{}
	for _, step := range []func(*values, *intent) *apiError{readMoney, readTexts, readMethodTypes} {
		if e := step(v, &c.intent); e != nil {
			return nil, e
		}
	}
	confirm, e := v.flag("confirm")
	if e != nil {
		return nil, e
	}
	if !confirm {
		for _, p := range []string{"off_session", "return_url", "error_on_requires_action"} {
			if v.scalars[p] != "" {
				return nil, invalid("", p, "The parameter `"+p+"` cannot be passed when creating a PaymentIntent unless `confirm` is set to true.")
			}
		}
		c.intent.Method = v.scalars["payment_method"]
		return c, nil
	}
	if c.confirm, e = readConfirmation(v); e != nil {
		return nil, e
	}
	if c.confirm.method == "" {
		return nil, invalid("parameter_missing", "payment_method", "You cannot confirm this PaymentIntent because it's missing a payment method. Pass one as `payment_method`.")
	}
	c.intent.ReturnURL = c.confirm.returnURL
	if e := c.confirm.redirectRule(&c.intent); e != nil {
		return nil, e
	}
	return c, nil
}

func readMoney(v *values, in *intent) *apiError {
	for _, p := range []string{"amount", "currency"} {
		if s, ok := v.scalars[p]; !ok {
			return missingParam(p)
		} else if s == "" {
			return emptyParam(p)
		}
	}
	amount, e := integer("amount", v.scalars["amount"])
	if e != nil {
		return e
	}
	in.Amount, in.Currency = amount, strings.ToLower(v.scalars["currency"])
	return checkMoney(in.Amount, in.Currency)
}

func readTexts(v *values, in *intent) (e *apiError) {
	if s := v.scalars["metadata"]; s != "" {
		return invalid("", "metadata", "Invalid object: metadata must be sent as metadata[key]=value.")
	}
	if in.Metadata, e = v.metadata(); e != nil {
		return e
	}
	in.About = v.scalars["description"]
	if in.Receipt, e = v.email("receipt_email"); e != nil {
		return e
	}
	if in.Suffix, e = v.suffix("statement_descriptor_suffix"); e != nil {
		return e
	}
	in.Customer = v.scalars["customer"]
	if e := checkCustomer(in.Customer); e != nil {
		return e
	}
	in.Capture, e = v.choice("capture_method", "automatic", "automatic", "automatic_async", "manual")
	return e
}

func checkCustomer(id string) *apiError {
	if id != "" && (!strings.HasPrefix(id, "cus_") || id == "cus_") {
		return invalid("resource_missing", "customer", "No such customer: '"+clip(id)+"'")
	}
	return nil
}

// readMethodTypes settles which payment methods are allowed. Since API version
// 2023-08-16 automatic payment methods are on unless types are listed.
func readMethodTypes(v *values, in *intent) *apiError {
	types, auto := v.lists["payment_method_types"], v.dicts["automatic_payment_methods"]
	enabled := auto["enabled"]
	switch {
	case auto != nil && enabled == "":
		return missingParam("automatic_payment_methods[enabled]")
	case auto != nil && enabled != "true" && enabled != "false":
		return invalid("", "automatic_payment_methods[enabled]", "Invalid boolean: "+clip(enabled))
	case enabled == "true" && types != nil:
		return invalid("", "automatic_payment_methods", "You may only specify one of these parameters: automatic_payment_methods, payment_method_types.")
	}
	for i, t := range types {
		if t != "card" && t != "us_bank_account" {
			return invalid("", "payment_method_types", "The payment method type \""+clip(t)+"\" is invalid. The simulator knows card and us_bank_account.")
		}
		if t == "us_bank_account" && in.Currency != "usd" {
			return invalid("", "payment_method_types", "The currency provided ("+in.Currency+") is invalid for the payment method type us_bank_account.")
		}
		if slices.Contains(types[:i], t) {
			return invalid("", "payment_method_types", "The payment method type \""+t+"\" is listed twice.")
		}
	}
	redirects := auto["allow_redirects"]
	switch redirects {
	case "":
		redirects = "always"
	case "always", "never":
	default:
		return invalid("", "automatic_payment_methods[allow_redirects]", "Invalid automatic_payment_methods[allow_redirects]: must be one of always, never")
	}
	switch {
	case types != nil:
		in.Types = types
	case enabled == "false":
		in.Types = []string{"card"}
	default:
		in.Redirects = redirects
		in.Types = []string{"card"}
		if in.Currency == "usd" && in.Capture != "manual" {
			in.Types = []string{"card", "us_bank_account"}
		}
	}
	return nil
}

func (c *create) apply(e env, _ *intent) effect {
	in := c.intent
	in.ID = e.ids.intent(e.seq)
	in.Secret = e.ids.secret(in.ID, e.seq)
	in.Created = e.created
	in.Status = needsMethod
	if c.confirm != nil {
		return c.confirm.run(e, &in)
	}
	if in.Method != "" {
		if e := e.use(&in, in.Method); e != nil {
			return refused(e, nil)
		}
		in.Status = needsConfirmation
	}
	return done(&in)
}
