"""What `proof/bench/peers/run` is made of."""
