"""Sentences on mixtures of experts as they are recomputed. Part of `wording.TABLE`: kind -> (English, Chinese)."""

ROUTING: dict[str, tuple[str, str]] = {
    "replay_no_choice": (
        "{side} recorded neither the router's logits nor the shares of the experts that {module} adds up",
        "{side} 既没有记录路由器的 logits，也没有记录 {module} 所加各专家的权重",
    ),
}
