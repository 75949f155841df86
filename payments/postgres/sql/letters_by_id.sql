SELECT {letter} FROM unnest($1::text[]) AS u(id) JOIN dead_letters d ON d.id = u.id
