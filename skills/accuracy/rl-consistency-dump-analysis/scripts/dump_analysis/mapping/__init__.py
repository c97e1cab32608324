"""Where mapping rows come from. So far: what people declare."""
