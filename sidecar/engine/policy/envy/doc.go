// Package envy solves OEF's cooperative program (§4.2.2, eq. 10): the division of GPU
// models that nobody would change for another's, with the largest sum of throughputs.
//
// With y_l for what tenant l gets of each model per unit of its weight, and v_i for what
// that is worth to tenant i:
//
//	max Σ_i Gain_i·v_i
//	    v_i ≤ Own_i · y_i
//	    Own_i · y_l ≤ v_i                 for all i ≠ l     (10c)
//	    Σ_l Mass_l · y_l ≤ Σ_l Mass_l     for every model   (10b)
//	    Σ_j Unit_j · y_lj ≤ Cap_l
//	    y ≥ 0, v ≥ Floor
//
// A tenant that can use only Cap GPUs sees in a part only its best Cap of them, which is not
// linear in the part y. But for any μ ≥ 0
//
//	μ·Cap + Σ_j max(Own_j - μ·Unit_j, 0)·y_j  ≥  the best Cap of y,
//
// with = where μ is the worth of the last GPU that counts. So a row reads a part at the μ that is
// right for it in the equal division, then at the answer, and so on: each answer is envy-free and
// not worse than the previous one, since that breaks no row of its own. The divisions free of envy are
// then no convex set, so the last answer need not be the best. A program with less envy gives an upper bound
// of the sum (Program.read), and a cap above what any part can have counts as none (Program.most).
//
// There are n² rows, and only about two per tenant bind. Finding these is nearly the whole
// problem: tenants of similar tastes compete. So
//
//  1. an interior point begins with the rows between each tenant and those nearest to it in taste. Before a
//     step would break other rows it stops, and takes them as well. With 15 rows per tenant it gets
//     to the optimum (interior.go);
//  2. the answer is held against every row of the program, and its sum against what the
//     multipliers prove to be the most (check.go).
//
// Many divisions may have the largest sum. The simplex gives a corner of them, the interior point one in their middle; nothing needs a corner.
//
// A dual simplex, which is given the rows that its answers break until there is none (simplex.go), solves the rest: few tenants;
// tenants in a total order of taste, whose binding rows are known before; tastes so much alike that the interior point's numbers are
// not exact enough; and, from a basis that the interior point suggests 1e-4 from the optimum, limited tenants, whose floors and caps may leave no
// interior. The interior point also solves the program with less envy, to 1e-4: by weak
// duality, its multipliers prove the bound.
package envy
